"""After deployment: is the new policy no worse than the baseline was?"""

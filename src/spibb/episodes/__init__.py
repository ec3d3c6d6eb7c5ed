"""What the episodes of a log say by themselves, without a model.

Their returns and the limits of these, with what probability their actions were taken, whether a
policy can have made them, and what single changes of it would have gained.
"""

"""How sure a log lets us be: the posterior of the gain."""

"""Lower bounds on means, and tests by betting: from samples alone, in samples of any size."""

"""Pure functions: returns, losses, distributions, running moments, initializers, random keys."""

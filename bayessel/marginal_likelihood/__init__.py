"""The probability of the data under a PyMC model, by several routes that audit each other."""

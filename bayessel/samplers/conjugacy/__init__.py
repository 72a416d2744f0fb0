"""What is conjugate in a PyMC model, read from its graph."""

"""Draws of Markov chains: how well they have mixed, what is wrong with them, and whether they may be used."""

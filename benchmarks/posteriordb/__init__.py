"""Samplers on the posteriors of posteriordb, whose reference draws say what is right."""

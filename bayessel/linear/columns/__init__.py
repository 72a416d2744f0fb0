"""Columns of a dictionary: where they are, an orthonormal basis that grows and shrinks, and fits on some of them."""

"""Slow, dense or exact answers that the tests compare every fast path with."""

"""Data sets, models and fits that tests of several packages share."""

"""Runs of step methods that stop on time and go on after a crash."""

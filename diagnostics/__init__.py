"""Diagnostics: they read results and never fit."""

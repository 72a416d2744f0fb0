"""The scikit-learn face of the engines."""

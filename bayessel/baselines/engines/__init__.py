"""The baselines on plain arrays: no scikit-learn."""

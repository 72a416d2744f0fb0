"""The field: every regressor by its defaults beside the peers of today, on DELVE's and UCI's sets."""

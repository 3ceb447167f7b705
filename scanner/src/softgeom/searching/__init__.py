"""Looking for a feature that makes a class win."""

"""Hardmax transformers: clustering, leaders, and what they say about sentiment."""

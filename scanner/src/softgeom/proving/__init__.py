"""Weights which show that no feature makes a class win, found by programmes and by entropy."""

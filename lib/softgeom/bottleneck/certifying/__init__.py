"""What a verdict stands on: rounding bounds, certified margins, certified captivity, and the file
that keeps them.
"""

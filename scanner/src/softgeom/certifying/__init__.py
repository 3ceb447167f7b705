"""What a verdict stands on: rounding bounds, certified margins, certificates of unargmaxability,
and the file that keeps them.
"""

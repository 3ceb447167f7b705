"""What a hostile world does to the tools: files that lie, and what `softgeom scan` answers. `make
torture` runs all of it.
"""

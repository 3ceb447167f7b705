"""The tools that keep the house: run a notebook, compare with the papers, render the README."""

"""The mathematics of the four papers, a folder each, and their explorers."""

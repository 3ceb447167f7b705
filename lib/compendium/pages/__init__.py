"""Pages made from recorded runs: README, papers, register and manifest in the repository, and the
whole site with its article.
"""

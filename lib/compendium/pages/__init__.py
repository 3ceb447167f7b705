"""Pages made from recorded runs: README, gallery, register and manifest in the repository, and the
whole site with its article.
"""

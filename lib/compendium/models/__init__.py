"""The models of the book: corpora as they are read, what was trained and where it is kept, and what
others released.
"""

"""Figures of the book, one module a chapter: each `draw_...` takes what was computed and returns a
figure with its finding as headline.
"""

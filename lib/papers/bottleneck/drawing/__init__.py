"""Regions and arrangements as polygons that can be drawn, in exact arithmetic where possible."""

"""Lesson 6, ask more: who wins among candidates (`classroom.masks`), and which documents come back
together (`classroom.pairs`).
"""

from __future__ import annotations

from classroom import masks, pairs

PREDICTIONS = masks.PREDICTIONS | pairs.PREDICTIONS
EXERCISES = masks.EXERCISES | pairs.EXERCISES

"""Answers to every question of the lessons (`lesson_cases.yaml`), right ones and known mistakes."""

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from classroom import rankings, winning

_CASES = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
RIGHT: dict[str, list[str]] = {question: case["right"] for question, case in _CASES.items()}
# (question, what is typed, words of the reply)
WRONG = [(question, *wrong) for question, case in _CASES.items() for wrong in case["wrong"].items()]


def value(typed: str) -> Any:
    """What Python makes of an answer."""
    names = {"np": np, "math": math, "Fraction": Fraction, "rankings": rankings, "winning": winning}
    return eval(typed, names)


def text_of(output: Any) -> str:
    """What an output of a cell says."""
    data = output.get("data", {})
    if "image/png" in data:
        return "a picture"
    return data.get("text/markdown") or data.get("text/plain") or output.get("text", "")

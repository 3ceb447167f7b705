"""Tables and claims as Markdown: a notebook and its page show the same.

Numbers have three significant digits; the CSV beside a table has all of them.
"""

from __future__ import annotations

import html
import math
import numbers
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from compendium.claims import Claim, Judgement

_WHOLE, _FIRST = 15, 8  # rows of a table that is shown whole, and of a longer one
_COLUMNS, _WIDE = 12, 60  # of a table that is shown: columns, characters of a cell
_MARKUP = re.compile(r"([\\`*_\[\]|$~])")
_NUMBERS_AS_NAMES = {"class", "seed", "id"}  # columns whose numbers name something
_NATS = set(
    "loss training validation held_out held_out_loss training_loss final_loss least_loss "
    "least_loss_without cross_entropy divergence penalty".split()
)  # columns of natural logarithms; others say their unit in their name


def plain(text: str) -> str:
    """Text in which Markdown and HTML see no markup."""
    return _MARKUP.sub(r"\\\1", html.escape(text, quote=False))


def digits(value: Any) -> str:
    """A number with three significant digits, whole ones and those above 1,000 to the unit;
    anything else as plain text, nothing for a missing value.
    """
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if not isinstance(value, numbers.Real):
        text = " ".join(str(value).split())
        return plain(text if len(text) <= _WIDE else f"{text[:_WIDE]}...")
    number = float(value) + 0.0  # no negative zero
    if math.isfinite(number) and (number.is_integer() or abs(number) >= 1000):
        return f"{number:,.0f}" if abs(number) < 1e15 else f"{number:.3g}"
    return f"{number:.3g}"


def table(frame: pd.DataFrame) -> str:
    """A data frame as a Markdown table; columns of numbers stand to the right."""
    types = pd.api.types
    right = [types.is_numeric_dtype(t) and not types.is_bool_dtype(t) for t in frame.dtypes]
    head = [_heading(str(column)) for column in frame.columns]
    rule = ["---:" if number else "---" for number in right]
    names = [column in _NUMBERS_AS_NAMES for column in frame.columns]
    body = [
        [str(v) if named else digits(v) for v, named in zip(row, names, strict=True)]
        for row in frame.itertuples(index=False)
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *body))


def captioned(frame: pd.DataFrame, caption: str, link: str = "") -> str:
    """Caption and first rows of a table, and what is left out; `link` leads to all of it."""
    if any(level is not None for level in frame.index.names):
        frame = frame.reset_index()
    rows, columns = frame.shape
    shown = rows if rows <= _WHOLE else _FIRST
    parts = [f"the first {shown} of {rows:,} rows"] * (rows > shown)
    parts += [f"{_COLUMNS} of {columns} columns"] * (columns > _COLUMNS)
    if link:
        parts.append(link)
    aside = f" ({', '.join(parts)})" if parts else ""
    return f"**Table.** {plain(caption)}{aside}\n\n{table(frame.iloc[:shown, :_COLUMNS])}"


def claim(stated: Claim, judged: Judgement) -> str:
    """What is claimed, what was found, what evidence the finding leaves out, and the verdict."""
    rule, missing = stated.rule, None in judged.evidence.values()
    evidence = "; ".join(
        f"`{name}` {digits(value) or 'not measured'} ({plain(rule.evidence.get(name, ''))})"
        for name, value in judged.evidence.items()
        if missing or name not in rule.printed
    )
    note = f" ({plain(judged.note)})" if judged.note else ""
    label = "Asked" if stated.kind == "ours" else "Stated"
    where = f"{plain(stated.title)}. {stated.paper}, {plain(stated.place)}, `{stated.id}`"
    lines = [
        f"**{judged.verdict.capitalize()}**{note}: {where}\n",
        f"- *{label}.* {plain(stated.statement)}",
        f"- *Found.* {plain(judged.says)}",
    ]
    lines += [f"- *Also measured.* {evidence}"] if evidence else []
    lines += [f"- *Misprint.* {plain(stated.misprint)}"] if stated.misprint else []
    return "\n".join(lines)


def _heading(column: str) -> str:
    """A column's name in words, with its unit."""
    if column.endswith("_nats"):
        column = f"{column.removesuffix('_nats')} (nats)"
    elif column in _NATS:
        column = f"{column} (nats)"
    return plain(column.replace("_", " "))

"""``softgeom coverage MODEL --text FILE``: which characters of a text can a model never write?"""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import Any

from softgeom import covering
from softgeom.characters import points
from softgeom.commands.boundary import DONE, TOO_MANY, UNDECIDED
from softgeom.covering import CAPPED, COVERAGE, FINE, OPEN, Character, Coverage
from softgeom.verdict_table import escape_token

_SHOWN = 40  # characters of a status on the terminal


def coverage(
    model: str, text: Path, *, out: str | None = None, json: bool = False, **options: Any
) -> int:
    """Judge, verify, print; 4 where a character is not fine, 3 where that is open."""
    found = covering.coverage(model, text, out=out, progress=not json, **options)
    found.verify()
    if json:
        print(dumps({"model": model, **found.to_dict(), "folder": out}))
    else:
        print("\n".join(_lines(found)))
        if out is not None:
            print(f"written: {Path(out) / COVERAGE}, with the proofs")
    if found.counts[FINE] + found.counts[OPEN] < len(found.characters):
        return TOO_MANY
    return DONE if found.ok else UNDECIDED


def _lines(found: Coverage) -> list[str]:
    total = sum(each.count for each in found.characters)
    size = f"{total:,} characters, {len(found.characters):,} different"
    lines = [f"{size}; {found.scan.features.describe()}"]
    for status, count in found.counts.items():
        named = [each for each in found.characters if each.status == status]
        if status == FINE:
            lines.append(f"{status}: {count:,}")
        elif count:
            what = f"{status} below {found.below:g}" if status == CAPPED else status
            shown = " ".join(map(_named, named[:_SHOWN])) + " ..." * (count > _SHOWN)
            lines.append(f"{what}: {count:,}  {shown}")
    for form in ("NFC", "NFD"):
        if read := [each for each in found.characters if each.form == form]:
            shown = " ".join(map(_named, read[:_SHOWN])) + " ..." * (len(read) > _SHOWN)
            lines.append(f"written otherwise in the model's list ({form}): {len(read):,}  {shown}")
    if found.passed_over:
        passed = ", ".join(f"{what} ({count:,})" for what, count in found.passed_over.items())
        lines.append(f"not asked about: {passed}")
    return lines


def _named(each: Character) -> str:
    shown = escape_token(each.text)
    visible = shown == each.text and each.text.strip() and len(each.text) == 1
    return shown if visible else f"{shown!r}({points(each.text)})"

"""Pointers to a source's own sentence: they hold the source fast without copying it.

A position counts the ASCII letters and digits of the source's text, in lower case, from 0: line
breaks, hyphens, ligatures and signs do not move it. `digest` begins the SHA-256 of the sentence,
written so. Pointers are checked where the texts lie, which are not part of the repository
(`<paper>_*.txt` in `$SOFTGEOM_PAPERS`, or in `shared/papers` beside the clone).
"""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from compendium import paths
from compendium.cache import while_unchanged

_DIGITS = 16  # of the digest: enough to notice any slip


@dataclass(frozen=True)
class Pointer:
    """Where a sentence stands: `length` letters and digits of `paper` from `start` on."""

    paper: str
    start: int
    length: int
    digest: str

    def __str__(self) -> str:
        place = f'paper: "{self.paper}", start: {self.start}, length: {self.length}'
        return f"{{{place}, digest: {self.digest}}}"

    @property
    def holds(self) -> bool:
        """Whether the source has, at this place, the sentence of this digest."""
        found = _positions(_file(self.paper))[0][self.start : self.start + self.length]
        return len(found) == self.length and _digest(found) == self.digest


def papers_dir() -> Path | None:
    """Folder of the sources' texts, or None; FileNotFoundError when the variable names none."""
    if chosen := os.environ.get("SOFTGEOM_PAPERS"):
        folder = Path(chosen).expanduser()
        if not folder.is_dir():
            raise FileNotFoundError(f"the folder {chosen!r} (from SOFTGEOM_PAPERS) does not exist")
        return folder
    beside = paths.root().parent / "shared" / "papers"
    return beside if beside.is_dir() else None


def has(paper: str) -> bool:
    """Whether the text of the paper is here."""
    return bool(_files(paper))


def find(paper: str, sentence: str) -> tuple[Pointer, int]:
    """The pointer to the first place of a pasted sentence, and how often it occurs.
    FileNotFoundError when the paper is not here, ValueError when the sentence is not in it.
    """
    wanted = "".join(filter(_counts, sentence.lower()))
    if not wanted:
        raise ValueError("the sentence has no letters or digits")
    whole, _ = _positions(_file(paper))
    start = whole.find(wanted)
    if start < 0:
        how = "paste it as its text has it, without footnotes or captions inside"
        raise ValueError(f"paper {paper} has no such sentence: {how}")
    return Pointer(paper, start, len(wanted), _digest(wanted)), whole.count(wanted)


def sentence(pointer: Pointer) -> str:
    """The source's own words at a pointer, on one line."""
    file = _file(pointer.paper)
    text, (_, places) = file.read_text(encoding="utf-8"), _positions(file)
    last = places[min(pointer.start + pointer.length, len(places)) - 1]
    after = text[last + 1 : last + 2]
    closing = after if after in {".", ")", "]", "?", "!"} else ""
    return " ".join(text[places[pointer.start] : last + 1].split()) + closing


def _counts(character: str) -> bool:
    return character.isascii() and character.isalnum()


def _digest(sentence: str) -> str:
    return hashlib.sha256(sentence.encode()).hexdigest()[:_DIGITS]


def _files(paper: str) -> list[Path]:
    folder = papers_dir()
    return sorted(folder.glob(f"{paper}_*.txt")) if folder else []


def _file(paper: str) -> Path:
    if files := _files(paper):
        return files[0]
    where = f"set SOFTGEOM_PAPERS to the folder that has {paper}_*.txt"
    raise FileNotFoundError(f"the text of paper {paper} is not here: {where}")


@while_unchanged
def _positions(file: Path) -> tuple[str, list[int]]:
    """Letters and digits of a text in lower case, and the place of each in it."""
    text = file.read_text(encoding="utf-8")
    lower = ((letter, place) for place, raw in enumerate(text) for letter in raw.lower())
    kept = [(letter, place) for letter, place in lower if _counts(letter)]
    return "".join(letter for letter, _ in kept), [place for _, place in kept]

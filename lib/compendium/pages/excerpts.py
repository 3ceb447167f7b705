"""The text of every page of the site as one script, from which the search shows where a word
stands.

Sphinx's own search fetches each page that it found, which a browser forbids to pages opened from a
folder; a script may be read from there.
"""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

_LONGEST = 40_000  # characters kept of a page: all of most, the beginning of the longest
_SILENT = {"script", "style", "svg", "nav", "math"}
_INLINE = {"a", "b", "code", "em", "i", "span", "strong", "sub", "sup"}
_VOID = {"br", "hr", "img", "input", "link", "meta", "source", "wbr"}


def script(site: Path) -> str:
    """JavaScript that sets `softgeomExcerpts`: name of a page, as the search knows it, to its
    text.
    """
    pages = {}
    for path in sorted(site.rglob("*.html")):
        name = path.relative_to(site).with_suffix("").as_posix()
        if not name.startswith("_static/") and (text := _article(path.read_text(encoding="utf-8"))):
            pages[name] = text[:_LONGEST]
    return f"window.softgeomExcerpts = {json.dumps(pages, ensure_ascii=False)};\n"


def _article(page: str) -> str:
    parser = _Article()
    parser.feed(page)
    return " ".join("".join(parser.pieces).split())


class _Article(HTMLParser):
    """Text inside <article>, without scripts, pictures, navigation and the signs that link to
    headings.
    """

    def __init__(self) -> None:
        super().__init__()
        # tags around this place, and whether their text counts
        self.open: list[tuple[str, bool]] = []
        self.pieces: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _INLINE:
            self.pieces.append(" ")
        if tag in _VOID:
            return
        counts = tag == "article" or bool(self.open and self.open[-1][1])
        self.open.append(
            (tag, counts and tag not in _SILENT and ("class", "headerlink") not in attrs)
        )

    def handle_endtag(self, tag: str) -> None:
        if any(tag == other for other, _ in self.open):
            while self.open.pop()[0] != tag:
                pass
        if tag not in _INLINE:
            self.pieces.append(" ")

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1][1]:
            self.pieces.append(data)

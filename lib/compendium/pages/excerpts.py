"""The text of every page of the site as one script, from which the search shows where a word
stands.

Sphinx's own search fetches each page that it found, which a browser forbids to pages opened from a
folder; a script may be read from there.
"""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

_LONGEST = 40_000  # characters kept of a page: all of most, the beginning of the longest
_ARTICLE = re.compile(r"(?s)<article\b[^>]*>(.*)</article>")
_LINK = re.compile(r'<a class="headerlink".*?</a>', re.DOTALL)  # a sign beside each heading
_SILENT = re.compile(r"(?s)<(script|style|svg|nav|math)\b.*?</\1>")
_INLINE = re.compile(r"</?(?:a|b|code|em|i|span|strong|sub|sup)\b[^>]*>")  # no space in their place
_TAG = re.compile(r"(?s)<!--.*?-->|<[^>]*>")


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
    """The text of a page that Sphinx wrote."""
    found = _ARTICLE.search(page)
    text = _SILENT.sub(" ", _LINK.sub("", found[1])) if found else ""
    return " ".join(html.unescape(_TAG.sub(" ", _INLINE.sub("", text))).split())

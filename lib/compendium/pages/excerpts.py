"""The text of every page as one script, from which the search shows where a word stands; Sphinx's
own search fetches each page, which a browser forbids to pages opened from a folder.
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
    """JavaScript that sets `softgeomExcerpts`: the search's name of a page to its text."""
    pages = {}
    for path in sorted(site.rglob("*.html")):
        name = path.relative_to(site).with_suffix("").as_posix()
        article = _ARTICLE.search(path.read_text(encoding="utf-8"))
        if article and not name.startswith("_static/"):
            text = _INLINE.sub("", _SILENT.sub(" ", _LINK.sub("", article[1])))
            pages[name] = " ".join(html.unescape(_TAG.sub(" ", text)).split())[:_LONGEST]
    return f"window.softgeomExcerpts = {json.dumps(pages, ensure_ascii=False)};\n"

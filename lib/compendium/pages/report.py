"""The site: notebooks, registers, explorers, lessons and an API reference, as one folder that opens
without a server, of the run at hand (`make report`) or of what the clone holds (`make site`).

Pages are assembled as sources in `build/report`, then Sphinx builds them into `build/html`.
"""

from __future__ import annotations

import filecmp
import html
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from compendium import paths, profiles, runs
from compendium.pages import api_pages, article, notebook_pages, readme, registers
from compendium.runs import NotebookRun
from softgeom.checkpoints.loading import load_softmax_layer
from softgeom.checkpoints.released import RELEASED

_CHAPTERS: dict[str, tuple[str, ...]] = {
    "Foundations": ("0",),
    **{name.capitalize(): digits for name, digits in profiles.CHAPTERS.items()},
    "Summary": ("9",),
}
# sections of the README that are for those who run things
_PRACTICAL = ("## See it in a minute\n",)
_FRONT = """---
myst:
  html_meta:
    description: "A text recogniser lists signs that it can never read: which outputs a softmax can
      never give, with proof."
    "property=og:title": "What can a softmax never say?"
{picture}---
"""
# what the picture of the front page is followed by: the gesture, then where to go from here
_DOORS = """**<a href="_static/story.html">Why? The story of one letter</a>**, from a misreading to
its proof, with all signs on a wall. In short:

<iframe class="explorer" data-src="_static/explorers/softmax.html" title="Softmax explorer:
drag the rows of a layer"></iframe>

Drag a row into the triangle of the others, and its class can never win again; drag it out, and it
can.

- [**Scan yours**](scan.md): drop a file of weights on a page, see what it can never say, take the
  proofs home. Nothing leaves the browser. Or [from the command line](running.md).
- [**Learn**](lessons/1_rankings_and_regions.md): six lessons in this tab, with figures to drag and
  exercises that answer; and [ninety minutes for a class](lessons/TEACHING.md).
- [**Reproduce**](running.md): every figure and table of four papers, each [claim](claims.md) with
  its rule and verdict, and what had to be [corrected](corrections.md).
"""
# of docs/, as they are
_PROOFS = ("answers", "verdicts", "certificates", "certificates_of_answers", "trust", "costs")
# pages of the repository, by their names on the site
_SHOWN = {"data/README": "data", "gallery/README": "claims", "reproducing": "running"}
_SHOWN |= {name: name for name in _PROOFS}
# places of the README that have a page of their own on the site
_DOORS_OF_README = {
    "#see-it-in-a-minute": "running.md#see-it-in-a-minute",
    "#scan": "scan.md",
    "#learn": "lessons/1_rankings_and_regions.md",
    "#reproduce": "running.md",
}
# a model whose licence lets a page carry its last layer, if its package is here
_TO_TRY = "ppocr-v4"
_EXCERPT = 40_000  # characters kept of a page for the search
_ARTICLE = re.compile(r"(?s)<article\b[^>]*>(.*)</article>")
_LINK = re.compile(r'<a class="headerlink".*?</a>', re.DOTALL)  # a sign beside each heading
_SILENT = re.compile(r"(?s)<(script|style|svg|nav|math)\b.*?</\1>")
_INLINE = re.compile(r"</?(?:a|b|code|em|i|span|strong|sub|sup)\b[^>]*>")  # no space in their place
_TAG = re.compile(r"(?s)<!--.*?-->|<[^>]*>")
_ICON = re.compile(r"\bfa-[a-z0-9-]+")
# no table of contents: the figure takes its place
_WIDE = "---\nhtml_theme.sidebar_secondary.remove: true\n---\n"


def build(profile: str) -> Path:
    """The site of executed notebooks of a profile; return its front page. FileNotFoundError when one
    has not been executed.
    """
    for name in (path.stem for path in paths.notebooks()):
        if not (paths.executed_dir(profile) / f"{name}.ipynb").is_file():
            again = f"run `make {name} PROFILE={profile}`, or `make all` for everything"
            raise FileNotFoundError(f"executed/{profile}/{name}.ipynb is missing: {again}")
    shown = runs.all_last(profile)
    pages = {run.name: notebook_pages.page(run, profile) for run in shown}
    return _build(shown, pages, profile, f"The run at hand, profile {profile}.")


def build_committed() -> Path:
    """The site of the committed results; return its front page. Nothing is executed."""
    shown = runs.all_committed()
    pages = {run.name: notebook_pages.page(run) for run in shown}
    return _build(shown, pages, runs.SHOWN[-1], "")


def _build(
    shown: Sequence[NotebookRun], notebooks: dict[str, Any], profile: str, told: str
) -> Path:
    source = paths.root() / "build" / "report.fresh"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(paths.root() / "report", source)
    _copy_files(shown, source)
    (source / "notebooks").mkdir()
    for name, page in notebooks.items():
        _write(source / "notebooks" / f"{name}.ipynb", json.dumps(page))
    pages = {
        "claims": registers.claims_page(shown),
        "comparisons": registers.comparisons_page(profile, shown),
        "corrections": registers.corrections_page(shown),
        "provenance": registers.provenance_page(shown),
        "data": (paths.root() / "data" / "README.md").read_text(encoding="utf-8"),
    }
    proofs = {name: _page(name, shown) for name in _PROOFS}
    explorers, lessons = _explorers(source), _lessons(source)
    try:
        story = article.page()
    except (KeyError, FileNotFoundError) as missing:
        story = article.unavailable(str(missing.args[0]))
    _write(source / "_static" / "story.html", story)
    (source / "api").mkdir()
    for name, text in api_pages.pages().items():
        _write(source / "api" / f"{name}.md", text)
    texts = (_rendered(page, shown) for page in ("README.md", "docs/reproducing.md"))
    front, running = split_readme(*texts)
    listed = {
        title: [f"notebooks/{name}" for name in notebooks if name.startswith(digits)]
        for title, digits in _CHAPTERS.items()
    }
    listed |= {"Explorers": explorers, "Lessons": lessons, "Registers": list(pages)}
    listed["Use"] = ["scan", *proofs, "running", "api/index"]
    pages |= proofs | {"running": running, "scan": _scan_page(source)}
    pages["index"] = "\n".join([_front_matter(front) + front, *map(_tree, listed, listed.values())])
    for name, text in pages.items():
        _write(source / f"{name}.md", text)
    _fetch_mathjax()
    place = paths.root() / "build"
    gone = _update(source, place / "report")
    return _sphinx(place / "report", place / "html", _banner(shown, told), anew=gone)


def _page(name: str, shown: Sequence[NotebookRun]) -> str:
    return _for_the_site(_rendered(f"docs/{name}.md", shown))


def _rendered(page: str, shown: Sequence[NotebookRun]) -> str:
    """A page of the repository with the values and pictures of the runs that the site shows."""
    path = paths.root() / page
    return readme.render(path.read_text(encoding="utf-8"), shown=shown) if path.is_file() else ""


def _banner(shown: Sequence[NotebookRun], told: str) -> str:
    """What every page must say: which run this is, and which notebooks lacked data."""
    lacking = [run for run in shown if run.aside and not run.name.startswith("9")]
    standing = ", ".join(run.name for run in lacking if run.stand_in)
    partial = ", ".join(run.name for run in lacking if not run.stand_in)
    told += f" On stand-in data, which judge no experiment: {standing}." if standing else ""
    told += f" Without a source of the committed results: {partial}." if partial else ""
    return told.strip()


def _copy_files(shown: Sequence[NotebookRun], source: Path) -> None:
    """Figures, as PNG, for the pages; results, as they are, for the links that end in numbers."""
    root = paths.root()
    for run in shown:
        for key in run.record["figures"]:
            _copy_picture(root / run.figure(key), source / run.figure(key))
        for path in run.results.glob("*.*"):
            _copy(path, source / "_extra" / path.relative_to(root))
    # of a run that is not shown
    for page in ("README.md", "docs/answers.md"):
        for picture in re.findall(r"\]\((figures/[^)]+)\)", _rendered(page, shown)):
            _copy_picture(root / picture, source / picture)


def split_readme(readme_text: str, reproducing: str = "") -> tuple[str, str]:
    """The front page and the page for those who run things, with links to pages of the site."""
    head, *sections = re.split(r"(?m)^(?=## )", _for_the_site(readme_text))
    practical = [part for part in sections if part.startswith(_PRACTICAL)]
    kept = [part for part in sections if part not in practical]
    front = "\n".join([head, _DOORS, *kept])
    more = re.sub(r"(?m)^# .*\n", "", _for_the_site(reproducing))
    return front, "# Running it\n\n" + "\n".join([*practical, more])


def _front_matter(front: str) -> str:
    """What a shared link shows: a sentence, and the front page's first picture."""
    first = re.search(r"\]\(figures/[^)]*?([^/)]+\.png)\)", front)
    site = readme.addresses().get("site")  # a shared link's picture needs a whole address
    picture = f'    "property=og:image": "{site}_images/{first[1]}"\n' if first and site else ""
    return _FRONT.replace("{picture}", picture)


def _for_the_site(text: str) -> str:
    text = re.sub(r"(?s)<!-- links\b.*?<!-- /links -->\n*", "", text)  # the reader is there already
    text = re.sub(r"<!-- /?(?:value|table|cost|figure|verdicts|links)\b.*?-->", "", text)

    def link(match: re.Match[str]) -> str:
        label, address = match[1], match[2].removeprefix("../")
        if address.endswith("/scan.html"):  # on the live site, which the repository's pages lead to
            return f"[{label}](scan.md)"
        if address in _DOORS_OF_README:
            return f"[{label}]({_DOORS_OF_README[address]})"
        if re.match(r"[a-z]+:|figures/|#", address):
            return match[0]
        if place := re.fullmatch(r"(?:docs/)?gallery/\d+\.md#((\d\d_)?.+)", address):
            page = f"notebooks/{place[1]}.html" if place[2] else f"claims.html#{place[1]}"
            lacking = place[2] and place[1] not in (path.stem for path in paths.notebooks())
            return label if lacking else f'<a href="{page}">{label}</a>'
        if address.startswith("notebooks/lessons/"):
            return f"[{label}]({address.removeprefix('notebooks/')})"
        page, end, anchor = address.removeprefix("docs/").partition(".md")
        return f"[{label}]({_SHOWN[page]}.md{anchor})" if end and page in _SHOWN else label

    text = re.sub(r"(?<!!)\[([^\]]+)\]\(([^)]+)\)", link, text)
    # of a row of links those that lead nowhere on the site say nothing
    return re.sub(r"(?m)^.*(?: · .*){3}$", _linked, text)


def _linked(row: re.Match[str]) -> str:
    return " · ".join(part for part in row[0].split(" · ") if re.search(r"\]\(|<a ", part))


def _tree(title: str, entries: list[str]) -> str:
    listed = "\n".join(entries)
    return f"```{{toctree}}\n:caption: {title}\n:hidden:\n\n{listed}\n```\n" if entries else ""


def _explorers(source: Path) -> list[str]:
    """One page per explorer: the standalone page, framed, so that it runs without a kernel."""
    from softgeom import explorers

    folder = source / "explorers"
    folder.mkdir()
    static = source / "_static" / "explorers"
    static.mkdir(parents=True)
    for name in explorers.NAMES:
        title = f"{name.capitalize()} explorer"
        (static / f"{name}.html").write_text(explorers.page(name), encoding="utf-8")
        frame, alone = _framed(f"../_static/explorers/{name}.html", title)
        text = f"{_WIDE}# {title}\n\n{frame}\n\n{alone}, for a projector or to keep.\n"
        _write(folder / f"{name}.md", text)
    return [f"explorers/{name}" for name in explorers.NAMES]


def _framed(address: str, title: str) -> tuple[str, str]:
    """A standalone page in a frame, and the link to it."""
    frame = f'<iframe class="explorer" data-src="{address}" title="{title}"></iframe>'
    return frame, f'<a href="{address}">On a page of its own</a>'


def _scan_page(source: Path) -> str:
    """The page on which a reader's own layer is scanned, framed as the explorers are."""
    from softgeom import explorers

    more = {}
    if RELEASED[_TO_TRY].available():
        released, layer = RELEASED[_TO_TRY], load_softmax_layer(_TO_TRY)
        origin = f"{released.wheel.package} {released.wheel.version}, {released.licence}"
        inside = explorers.scan_page(layer, f"{released.title} ({origin})")
        _write(source / "_static" / f"scan-{_TO_TRY}.html", inside)
        more[f"the {released.title} ({len(inside) / 1e6:.0f} MB)"] = f"scan-{_TO_TRY}.html"
    _write(source / "_static" / "scan.html", explorers.scan_page(more=more))
    frame, alone = _framed("_static/scan.html", "Scan a layer in this browser")
    told = f"{alone}, to keep and to use without a network."
    return f"{_WIDE}# Scan your last layer here\n\n{frame}\n\n{told}\n"


def _lessons(source: Path) -> list[str]:
    """The lessons' pages, framed as the explorers are, and what teachers need."""
    folder = paths.root() / "notebooks" / "lessons"
    (source / "lessons").mkdir()
    # the classroom stands beside the compendium: neither imports the other
    command = [sys.executable, "-m", "classroom.pages", str(source / "_static")]
    made = subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8")
    titles = json.loads(made.stdout)
    for name, title in titles.items():
        frame, alone = _framed(f"../_static/{name}.html", title)
        told = f"{alone}, to keep and to use without a network."
        _write(source / "lessons" / f"{name}.md", f"{_WIDE}# {title}\n\n{told}\n\n{frame}\n")
    for path in folder.glob("*.md"):
        text = path.read_text(encoding="utf-8").replace(".ipynb)", ".md)")
        _write(source / "lessons" / path.name, text)
    pages = sorted(path.stem for path in folder.glob("*.md"))
    return [f"lessons/{name}" for name in [*titles, *pages]]


def _fetch_mathjax() -> None:
    """MathJax from npm, by the hash in its lock; without it formulas need a network."""
    place, lock = paths.root() / "build" / "npm", paths.root() / "report" / "npm"
    if not (place / "node_modules" / "mathjax").is_dir() and lock.is_dir():
        shutil.copytree(lock, place, dirs_exist_ok=True)
        if npm := shutil.which("npm"):
            subprocess.run([npm, "ci", "--silent", "--ignore-scripts"], cwd=place)
    if not (place / "node_modules" / "mathjax").is_dir():
        print("report: npm did not fetch MathJax; formulas in this build need a network")


def _update(fresh: Path, source: Path) -> bool:
    """Bring `source` to what `fresh` holds, but for what says the same, which Sphinx does not read
    again; whether a file is gone.
    """
    new = {path.relative_to(fresh) for path in fresh.rglob("*") if path.is_file()}
    gone = {path.relative_to(source) for path in source.rglob("*") if path.is_file()} - new
    for path in gone:
        (source / path).unlink()
    for path in new:
        there = source / path
        if not there.is_file() or not filecmp.cmp(fresh / path, there, shallow=False):
            there.parent.mkdir(parents=True, exist_ok=True)
            (fresh / path).replace(there)
    shutil.rmtree(fresh)
    return bool(gone)


def _sphinx(source: Path, output: Path, banner: str, *, anew: bool) -> Path:
    if anew:
        shutil.rmtree(output, ignore_errors=True)
    doctrees = str(output.parent / "doctrees")  # beside the site, not inside it
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", "-j", "2", "-d", doctrees]
    command += ["-D", f"html_theme_options.announcement={banner}"] if banner else []
    command += [str(source), str(output)]
    if subprocess.run(command).returncode != 0:
        raise ValueError("Sphinx could not build the report; its messages stand above")
    static = output / "_static"
    _write(static / "excerpts.js", excerpts(output))
    styles = ("pygments.css", "styles/sphinx-book-theme.css", "report.css")
    joined = "\n".join((static / name).read_text("utf-8") for name in styles)
    _write(static / "styles" / "site.css", joined)
    _drop_unused_icons(output)
    for path in output.rglob("*.map"):  # a third of the theme, for those who debug its scripts
        path.unlink()
    shutil.rmtree(static / "locales", ignore_errors=True)
    return output / "index.html"


def _drop_unused_icons(site: Path) -> None:
    """Take from the theme's style the two thousand icons that no page and no script names."""
    style = site / "_static" / "styles" / "pydata-sphinx-theme.css"
    naming = [*site.rglob("*.html"), *(site / "_static" / "scripts").glob("*.js")]
    used = {name for path in naming for name in _ICON.findall(path.read_text("utf-8"))}
    kept = re.sub(
        r"(?:\.fa-[a-z0-9-]+,?)+\{--fa:\"[^\"]*\"\}",
        lambda rule: rule[0] if used & set(_ICON.findall(rule[0])) else "",
        style.read_text("utf-8"),
    )
    _write(style, kept)


def _copy(origin: Path, destination: Path) -> None:
    if origin.is_file():
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(origin, destination)


def _copy_picture(origin: Path, destination: Path) -> None:
    """A figure in 256 colours, chosen for it: a third of the bytes, and the same to the eye."""
    from PIL import Image

    if origin.is_file():
        destination.parent.mkdir(parents=True, exist_ok=True)
        Image.open(origin).convert("RGB").quantize(256).save(destination, "PNG", optimize=True)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def excerpts(site: Path) -> str:
    """JavaScript that sets `softgeomExcerpts`, the search's name of a page to its text, from which
    it shows where a word stands; Sphinx's own search fetches each page, which a browser forbids to
    pages opened from a folder.
    """
    pages = {}
    for path in sorted(site.rglob("*.html")):
        name = path.relative_to(site).with_suffix("").as_posix()
        article = _ARTICLE.search(path.read_text(encoding="utf-8"))
        if article and not name.startswith("_static/"):
            text = _INLINE.sub("", _SILENT.sub(" ", _LINK.sub("", article[1])))
            pages[name] = " ".join(html.unescape(_TAG.sub(" ", text)).split())[:_EXCERPT]
    return f"window.softgeomExcerpts = {json.dumps(pages, ensure_ascii=False)};\n"

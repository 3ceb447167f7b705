"""The site: Sphinx over the repository's pages, beside pages that stand alone (explorers, lessons,
the story and the page that scans). It shows the committed results; nothing is executed.

A notebook's page is that of the repository, with the code folded in.
"""

import html
import shutil
import subprocess
import sys
from pathlib import Path

from compendium import paths
from compendium.pages import article
from papers import explorers
from softgeom.checkpoints.loading import load_softmax_layer
from softgeom.checkpoints.released import RELEASED
from softgeom.web.document import document

SETTINGS = "docs/site"  # folder of Sphinx's settings, in the repository
_TO_TRY = "ppocr-v4"  # its licence lets a page carry its last layer, where its package is installed


def build() -> Path:
    """Build the site into `build/html`; return its front page. ValueError when Sphinx fails."""
    root = paths.root()
    write_pages(root / "build" / "pages")
    output = root / "build" / "html"
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", "-c", str(root / SETTINGS)]
    command += ["-E", "-d", str(root / "build" / "doctrees"), str(root), str(output)]
    if subprocess.run(command).returncode != 0:
        raise ValueError("Sphinx could not build the site: see its messages above")
    return output / "index.html"


def write_pages(folder: Path) -> None:
    """Write every page that stands alone into a folder, which is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    pages = {f"explorers/{name}.html": explorers.page(name) for name in explorers.NAMES}
    try:
        pages["story.html"] = article.page()
    except (KeyError, FileNotFoundError) as missing:
        said = (
            f"This page takes its numbers from recorded results; one is missing: {missing.args[0]}."
        )
        pages["story.html"] = document(
            article.TITLE, "", f"<main><p>{html.escape(said)}</p></main>"
        )
    more = {}
    if RELEASED[_TO_TRY].available():
        released, name = RELEASED[_TO_TRY], f"scan-{_TO_TRY}.html"
        origin = f"{released.wheel.package} {released.wheel.version}, {released.licence}"
        title, layer = f"{released.title} ({origin})", load_softmax_layer(_TO_TRY)
        pages[name] = explorers.scan_page(layer, title)
        more[f"the {released.title} ({len(pages[name]) / 1e6:.0f} MB)"] = name
    pages["scan.html"] = explorers.scan_page(more=more)
    for name, text in pages.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    # the classroom stands beside the compendium: neither imports the other
    (folder / "lessons").mkdir()
    command = [sys.executable, "-m", "classroom.pages", str(folder / "lessons")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

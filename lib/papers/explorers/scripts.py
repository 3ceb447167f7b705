"""The explorers' JavaScript and CSS: the files of `static/`, joined by `softgeom.web.scripts`."""

from functools import partial
from pathlib import Path

from softgeom.web import scripts

FOLDER = Path(__file__).parent / "static"

module = partial(scripts.module, folder=FOLDER)
page_module = partial(scripts.page_module, folder=FOLDER)
text = partial(scripts.text, folder=FOLDER)
stylesheet = scripts.stylesheet

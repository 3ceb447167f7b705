"""The page that scans an output layer in the browser, as one HTML text: a file is dropped on it,
and nothing of it leaves the page.

Search and proofs run in a worker, in the JavaScript of `static/scan_*.js`, with the library's
bounds on rounding; what it can not decide is called undecided. The folder that it offers is the one
of `softgeom scan`: `softgeom verify` and `tools/check_evidence.py` check it.
"""

from __future__ import annotations

import base64
import io
import re

import numpy as np

from softgeom.explorers import scripts
from softgeom.explorers.document import FIGURE, document
from softgeom.explorers.examples import initial_state

TITLE = "Scan your last layer here"


def scan_page() -> str:
    """The page as one HTML text, with its worker and a small example inside.

    Returns
    -------
    str
        Write it to a file and open that, or show it in an iframe, as the explorers' pages.
    """
    parts = {
        "title": TITLE,
        "worker": scripts.module("scan_worker"),
        "script": scripts.module("scan_page"),
        "example": example(),
    }
    body = re.sub(
        "@(title|worker|script|example)@", lambda m: parts[m[1]], scripts.text("scan.html")
    )
    style = scripts.stylesheet() + scripts.text("scan.css") + FIGURE
    return document(TITLE, style, body, workers=True)


def example() -> str:
    """The softmax explorer's first layer with names, an .npz file in base64."""
    state = initial_state("softmax")
    arrays = {"W": np.array(state["W"], dtype=np.float32)}
    if state["b"] is not None:
        arrays["b"] = np.array(state["b"], dtype=np.float32)
    tokens = np.array([f"c{n}" for n in range(1, len(arrays["W"]) + 1)])
    with io.BytesIO() as file:
        np.savez(file, allow_pickle=False, tokens=tokens, **arrays)
        return base64.b64encode(file.getvalue()).decode()

"""The page that scans an output layer in the browser, as one HTML text: a file is dropped on it,
and nothing of it leaves the page.

Search and proofs run in a worker, in the JavaScript of `static/scan_*.js`, with the library's
bounds on rounding; what it can not decide is called undecided. The folder that it offers is the one
of `softgeom scan`: `softgeom verify` and `tools/check_proofs.py` check it.
"""

from __future__ import annotations

import base64
import html
import io
import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from softgeom.checkpoints import head_table
from softgeom.checkpoints.conventions import DEFAULTS, MEANINGS, TOLD
from softgeom.checkpoints.npz import CONVENTIONS
from softgeom.layer import SoftmaxLayer
from softgeom.web import scripts
from softgeom.web.document import FIGURE, document

TITLE = "Scan your last layer here"


def scan_page(
    layer: SoftmaxLayer | None = None, name: str = "", more: Mapping[str, str] | None = None
) -> str:
    """The page as one HTML text, with its worker and a layer to try inside: ``layer``, which a
    button calls ``name``, or a small example. ``more`` has addresses of such pages with other
    layers, by the names of these.
    """
    links = [
        f'<a href="{html.escape(to)}">{html.escape(of)}</a>' for of, to in (more or {}).items()
    ]
    parts = {
        "title": TITLE,
        "worker": scripts.module("scan_worker"),
        "script": scripts.module("scan_page"),
        "table": json.dumps(table()),
        "example": example(_small() if layer is None else layer),
        "file": f"{name.partition(' (')[0] or 'example'}.npz",
        "try": f"Scan {html.escape(name)}" if name else "Try it with a small example",
        "more": f"<p>Or open this page with {', '.join(links)} inside.</p>" if links else "",
    }
    body = re.sub("@(\\w+)@", lambda m: parts[m[1]], scripts.text("scan.html"))
    style = scripts.stylesheet() + scripts.text("scan.css") + FIGURE
    return document(TITLE, style, body, workers=True)


def table() -> dict[str, Any]:
    """What tells a head from other matrices and what stands behind it: the rows that the library
    decides by, for `static/scan_heads.js` and the readers of GGUF and ONNX.
    """
    behind = {key: None if key in TOLD else sorted(families or ()) for key, families, _ in MEANINGS}
    patterns = ("ENDING", "RECURRENT", "CODED", "PART", "SCORES", "STATES")
    rows = ("EMBEDDINGS", "BIASES", "SIBLINGS")
    sets = ("WRAPPERS", "CONTAINERS", "EMBEDDERS")
    return {
        **{name.lower(): getattr(head_table, name) for name in rows},
        **{name.lower(): sorted(getattr(head_table, name)) for name in sets},
        "language": head_table.LANGUAGE_HEADS,
        "frames": head_table.FRAME_HEADS,
        "classes": head_table.CLASS_HEADS,
        "npz": CONVENTIONS,
        "behind": dict.fromkeys(sorted(TOLD)) | behind,
        "defaults": DEFAULTS,
        **{name.lower(): getattr(head_table, name).pattern for name in patterns},
    }


def example(layer: SoftmaxLayer) -> str:
    """The layer as an .npz file in base64."""
    parts = {"W": layer.W, "b": layer.b, "tokens": layer.tokens and np.array(layer.tokens)}
    held: dict[str, Any] = {name: array for name, array in parts.items() if array is not None}
    with io.BytesIO() as file:
        np.savez_compressed(file, **held)
        return base64.b64encode(file.getvalue()).decode()


def _small() -> SoftmaxLayer:
    """Three classes and a fourth inside their triangle, which can never win."""
    W = np.array([[0.0, 2.0], [-1.75, -1.0], [1.75, -1.0], [0.25, 0.0]], np.float32)
    return SoftmaxLayer(W, tokens=["c1", "c2", "c3", "c4"])

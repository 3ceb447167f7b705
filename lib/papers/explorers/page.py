"""An explorer as one HTML text: no kernel, no server, no network; it works from a folder and inside
an iframe.
"""

import html
import json
from collections.abc import Mapping
from typing import Any

from papers.explorers import examples, scripts
from softgeom.web.document import FIGURE, document

_TITLES = {
    "softmax": "Who can win a softmax?",
    "fold": "Where a line folds",
    "attention": "Where attention folds",
    "hardmax": "Leaders and followers",
}
_LEADS = {
    "softmax": "Each class is a vector. Drag one inside the hull of the others and it can never "
    "win, for any features.",
    "fold": "Attention on a line: turn the coupling up until the curve folds, and one residual "
    "belongs to several tokens.",
    "attention": "Drag the last token among its past. On the red curve its change of variables is "
    "singular: the margin is gone.",
    "hardmax": "Each token moves towards the tokens that it scores highest. Drag where they start "
    "and see who leads.",
}
NAMES = tuple(_TITLES)
_KEPT = {  # what a link holds
    "softmax": ("W", "b", "among", "first"),
    "fold": ("past", "coupling", "level"),
    "attention": ("X", "coupling", "turn"),
    "hardmax": ("Z", "alpha", "ratio", "angle", "temperature"),
}

_BODY = """
<main class="softgeom">
<h1>{title}</h1>
<p class="sg-note">{lead}</p>
<div id="explorer"></div>
<noscript>This figure is interactive and needs JavaScript.</noscript>
</main>
<script type="module">
{script}
const model = new PageModel({state});
keepInAddress(model, {kept});
embed();
render({{ model, el: document.getElementById("explorer") }});
</script>
"""


def page(name: str, state: Mapping[str, Any] | None = None) -> str:
    """The explorer `name` ("softmax", "fold", "attention" or "hardmax") as one HTML text: write it
    to a file and open that, or show it in an iframe.

    `state` is what differs from the state in which the explorer starts, in plain lists and numbers,
    such as `{"W": [[0, 2], [-2, -1], [2, -1]], "b": None}`. The page asks nothing of a network: its
    content security policy forbids it to. An iframe may ask for a theme with `#light` or `#dark`
    behind the address (also later), and is told the page's height by messages `{"softgeomHeight":
    pixels}`. In a window of its own the address keeps what was dragged, so that its link shows the
    same figure to others. ValueError when there is no such explorer, or no such entry in its state.
    """
    if name not in _TITLES:
        raise ValueError(f"there is no explorer {name!r}: choose one of {', '.join(NAMES)}.")
    start = examples.initial_state(name)
    if unknown := sorted(set(state or {}) - set(start)):
        raise ValueError(
            f"the {name} explorer has no {', '.join(unknown)}: its state is {', '.join(start)}."
        )
    title = _TITLES[name]
    body = _BODY.format(
        title=html.escape(title),
        lead=html.escape(_LEADS[name]),
        script=scripts.page_module(name),
        state=_script_literal(start | dict(state or {})),
        kept=_script_literal(_KEPT[name]),
    )
    return document(title, scripts.stylesheet() + FIGURE, body)


def _script_literal(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(value, allow_nan=False).replace("<", "\\u003c")

"""The page that scans an output layer in the browser, as one HTML text: a file is dropped on it,
and nothing of it leaves the page.

Search and proofs run in a worker, in the JavaScript of `static/scan_*.js`, with the library's
bounds on rounding; what it can not decide is called undecided. The folder that it offers is the one
of `softgeom scan`: `softgeom verify` and `tools/check_evidence.py` check it.
"""

from __future__ import annotations

import base64
import io

import numpy as np

from softgeom.explorers import scripts
from softgeom.explorers.document import FIGURE, document
from softgeom.explorers.examples import initial_state

TITLE = "Scan your last layer here"

_BODY = """
<main class="softgeom">
<h1>{title}</h1>
<p>Which answers can your model never give? Drop the weights of its last layer, and see the classes that no input can make win. Everything
is computed on this page: it may not ask anything of a network, and the file never leaves it.</p>
<div class="sg-drop" id="drop">
<label for="file">An <b>.onnx</b>, <b>.npz</b> or <b>.safetensors</b> file with a table of classes × features (float16, bfloat16, float32 or float64), up to 20,000 classes
and 8 million numbers</label>
<input type="file" id="file" accept=".onnx,.npz,.safetensors">
<button type="button" id="example">Try it with a small example</button>
<details><summary>Or with a recogniser in use</summary><p class="sg-note"><code>pip download --no-deps rapidocr-onnxruntime==1.4.4</code>, open the wheel as a zip, and drop
<code>ch_PP-OCRv4_rec_infer.onnx</code> here; <code>rapidocr==3.10.0</code> has PP-OCRv6. Both bring the names of their signs.</p></details>
</div>
<p class="sg-message" id="problem" role="alert" hidden></p>
<p class="sg-note" id="said" role="status" aria-live="polite"></p>
<form id="choice" hidden>
<div class="sg-fields">
<label>Table <select id="weight"></select></label>
<label class="sg-check"><input type="checkbox" id="transposed"> stored as features × classes</label>
<label>Bias <select id="bias"></select></label>
<label>Names of the classes (optional; one a line, or a JSON list) <input type="file" id="labels" accept=".txt,.json"></label>
<label>Inputs x of the layer <select id="set"><option value="box">every coordinate within bounds</option><option value="ball">‖x‖ at most</option><option
value="layernorm">outputs of LayerNorm</option><option value="rmsnorm">outputs of RMSNorm</option><option value="unbounded">anything at all</option></select></label>
<label id="upper">Bound <input type="text" id="bound" inputmode="decimal" value="100"></label>
<label id="lower">Lower bound, where it differs (after ReLU: 0) <input type="text" id="low" inputmode="decimal" placeholder="minus the bound"></label>
<label id="gains" hidden>Its gain <select id="gain"></select></label>
<label id="shifts" hidden>Its shift <select id="shift"></select></label>
</div>
<p class="sg-note" id="shape"></p>
<p><button type="submit" class="sg-main" id="start">Scan</button></p>
</form>
<div id="working" hidden>
<label for="bar">How far the scan is</label>
<progress id="bar" max="1" value="0"></progress>
<p class="sg-note" id="far"></p>
<p><button type="button" id="cancel">Cancel</button></p>
</div>
<section id="found" aria-labelledby="headline" hidden>
<h2 id="headline" tabindex="-1"></h2>
<ul id="counts"></ul>
<p class="sg-note" id="took"></p>
<p class="sg-wall" id="wall" tabindex="0" role="group" aria-label="All classes; those that are not proven to win are lit"></p>
<p class="sg-note">All classes, as your fonts draw their names: the lit ones are not proven to win.</p>
<div id="list">
<h2>Classes that are not proven to win</h2>
<div class="sg-fields"><label>Search by number, name or verdict <input type="search" id="filter"></label></div>
<p class="sg-note" id="matching" aria-live="polite"></p>
<table class="sg-scanned"><caption class="sg-note">Captors: the classes whose weighted mean is always at least as high, with their weights</caption>
<thead><tr><th scope="col">class</th><th scope="col">verdict</th><th scope="col">captors</th></tr></thead><tbody id="rows"></tbody></table>
<p><button type="button" id="more">Show more</button></p>
</div>
<h2>The proofs</h2>
<p>Each verdict has its evidence: a point, or weights. The folder is the one that <code>softgeom scan</code> writes: unpack it, and
<code>softgeom verify scan MODEL</code> (the file you dropped; with <code>--labels FILE</code> where you gave names), or <code>python tools/check_evidence.py scan/evidence.npz layer.npz</code> in exact fractions, checks every proof. Undecided classes are left out of it.</p>
<p class="sg-bar"><button type="button" class="sg-main" id="folder">Download the evidence (scan.zip)</button>
<button type="button" id="layer">Download the layer alone (layer.npz)</button></p>
</section>
<noscript>This page computes in JavaScript; softgeom scan does the same at a prompt.</noscript>
</main>
<script type="text/plain" id="worker">
{worker}
</script>
<script type="module">
{script}
scanPage(document.getElementById("worker").textContent, "{example}");
</script>
"""


def scan_page() -> str:
    """The page as one HTML text, with its worker and a small example inside.

    Returns
    -------
    str
        Write it to a file and open that, or show it in an iframe, as the explorers' pages.
    """
    body = _BODY.format(
        title=TITLE,
        worker=scripts.plain_script("scan_worker"),
        script=scripts.plain_script("scan_page"),
        example=example(),
    )
    style = scripts.stylesheet() + scripts.extra_stylesheet("scan") + FIGURE
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

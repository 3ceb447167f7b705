"""The command line: its verbs and their options, which are those of the functions below it. What a
verb needs is imported when it runs, so that ``--help`` and a mistyped verb cost nothing.

Results go to standard output, progress and errors to standard error; `softgeom.errors` lists the
exit codes.
"""

from __future__ import annotations

import argparse
import logging
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from softgeom.commands.boundary import WRONG, guarded, one_line, open_streams

# a verb: the function that runs it, and what it does
VERBS = {
    "inspect": ("layers:inspect", "list what could be a softmax layer, as commands to copy"),
    "scan": ("scan:scan", "find the outputs that a model can never produce, each proven"),
    "verify": ("proofs:verify", "re-check every proof of a folder of results, without a solver"),
    "explain": ("proofs:explain", "why a class can never win, or an input at which it does"),
    "ceiling": ("ceiling:ceiling", "how probable an output can ever become, for any input"),
    "ask": (
        "ask:ask",
        "more questions: candidates, rankings, sets of documents or labels, experts",
    ),
    "coverage": ("coverage:coverage", "which characters of a text the model can never write"),
    "diff": ("proofs:diff", "what changed between two scans"),
    "prune": ("layers:prune", "the same model without outputs that can never be the answer"),
    "repair": ("layers:repair", "a layer in which every class can win"),
    "survey": ("scan:survey", "several models in one table"),
}

# what `softgeom VERB --help` ends with
EXAMPLES = {
    "inspect": "softgeom inspect model.onnx",
    "scan": "softgeom scan model.onnx --features auto --fail-on unargmaxable=0",
    "verify": "softgeom verify scans/g2pm g2pm",
    "explain": "softgeom explain ppocr-v4 刈",
    "ceiling": "softgeom ceiling ppocr-v6 Ğ ş --out ceilings",
    "ask": "softgeom ask model.onnx --order cat dog --order dog cat",
    "coverage": "softgeom coverage ppocr-v6 --text menu.txt --below 0.5",
    "diff": "softgeom diff scans/before scans/after",
    "prune": "softgeom prune model.onnx --out smaller.onnx",
    "repair": "softgeom repair model.onnx --out repaired.onnx",
    "survey": "softgeom survey ppocr-v4 g2pm models/*.onnx",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    closed = open_streams()
    return run(parse(arguments)) if closed is None else closed


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """What a command line asks for, and nothing that it does not say; SystemExit with one sentence
    where it is wrong.
    """
    return make_parser().parse_args(arguments)


def run(parsed: argparse.Namespace) -> int:
    """Run what was parsed: the exit code."""
    options = vars(parsed).copy()
    module, _, name = VERBS[options.pop("command")][0].partition(":")

    def work() -> int:
        _log_to_terminal()
        code = getattr(import_module(f"softgeom.commands.{module}"), name)(**options)
        return int(code)

    return guarded(work)


def _log_to_terminal() -> None:
    logger = logging.getLogger("softgeom")
    if not logger.handlers and not logging.getLogger().handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_OneLine("softgeom: %(message)s"))
        logger.addHandler(handler)


class _OneLine(logging.Formatter):
    """A warning as one line: it may hold names from a file."""

    def format(self, record: logging.LogRecord) -> str:
        return one_line(super().format(record))


class _Parser(argparse.ArgumentParser):
    """A parser whose complaints are one sentence: what is wrong, and where help is."""

    def error(self, message: str) -> NoReturn:
        what = f"{self.prog}: {one_line(message)}; `{self.prog} --help` lists what there is.\n"
        self.exit(WRONG, what)


def make_parser() -> argparse.ArgumentParser:
    """The parser. What a command line does not say is absent from what it parses, so that the
    functions' own defaults hold.
    """
    from softgeom import __version__

    about = "The geometry of softmax: which outputs can this model never produce?"
    first = "A first model to try: softgeom scan g2pm"
    parser = _Parser(prog="softgeom", description=about, epilog=first)
    parser.add_argument("--version", action="version", version=f"softgeom {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    verbs = {
        verb: commands.add_parser(
            verb,
            help=what,
            description=f"{what[0].upper()}{what[1:]}.",
            epilog=f"Example: {EXAMPLES[verb]}",
            argument_default=argparse.SUPPRESS,
        )
        for verb, (_, what) in VERBS.items()
    }
    for verb, options in _OPTIONS.items():
        options(verbs[verb])
    return parser


def _inspect(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="a file, folder, hub id or released model")
    every = "list every matrix of the file, not the likeliest 8 alone"
    parser.add_argument("--all", action="store_true", help=every)
    _json(parser)


def _scan(parser: argparse.ArgumentParser) -> None:
    _model(parser)
    _features(parser)
    group = parser.add_argument_group("which classes (all others stay rivals)")
    group.add_argument("--classes", help="numbers and ranges, such as 0-99,7340")
    _work(parser)
    add = parser.add_argument
    wider = "also prove them for unbounded features (done by default up to 1,000 classes)"
    add("--wider", action="store_true", help=wider)
    faster = "faster: certify winners from partial products; margins stay valid but are smaller"
    add("--verdicts-only", action="store_true", help=faster)
    add("--out", help="folder for the results (default: scans/NAME-FINGERPRINT)")
    fail = "exit with 4 when more than N classes have this verdict, such as unargmaxable=0"
    add("--fail-on", metavar="VERDICT[=N]", help=fail)
    listed = (
        "what --fail-on does not count: a file of tokens or numbers, one a line, or the folder of "
        "an earlier scan"
    )
    add("--expected", type=Path, help=listed)
    _json(parser, "print the summary as JSON")
    add("--quiet", action="store_true", help="print nothing but errors")


def _verify(parser: argparse.ArgumentParser) -> None:
    where = "where softgeom scan, ask or ceiling wrote, or one file of proofs"
    parser.add_argument("folder", type=Path, help=where)
    _model(parser)


def _explain(parser: argparse.ArgumentParser) -> None:
    _model(parser)
    parser.add_argument("class_", metavar="CLASS", help="its token, or its number")
    _features(parser)


def _ceiling(parser: argparse.ArgumentParser) -> None:
    _model(parser)
    add = parser.add_argument
    add("classes", nargs="*", metavar="CLASS", help="tokens or numbers (default: all classes)")
    _features(parser)
    reach = "count the outputs that can ever reach this probability"
    add("--at", type=float, metavar="P", help=reach)
    _workers(parser)
    add("--out", help="folder for the table and the proofs")


def _ask(parser: argparse.ArgumentParser) -> None:
    _model(parser)
    add = parser.add_argument_group(
        "the question (classes by token or number, or @FILE: one a line; one set a line, "
        "with tabs between, where a set is asked for)"
    ).add_argument
    names: dict[str, Any] = {"nargs": "*", "metavar": "CLASS"}
    add("--among", **names, help="only these compete; alone: can each of them win?")
    add("--blocked-by", metavar="CLASS", help="which few rivals keep this class from winning?")
    for option, what in (
        ("--order", "can this be the top, in this order?"),
        ("--together", "can these be the top, in any order?"),
        ("--on", "can exactly these labels of a sigmoid layer be on?"),
    ):
        add(option, action="append", **names, help=f"{what} (repeatable)")
    experts = "which experts can be among a router's top K?"
    add("--experts", type=_count, metavar="K", help=experts)
    text = "which are never in CTC's most probable text? (no CLASS: all that can never win a frame)"
    add("--in-text", **names, help=text)
    add("--ctc-blank", metavar="CLASS", help="its blank (default: the class called <blank>)")
    sample = "N random sets of --size classes for --order, --together, --on"
    add("--sample", type=_count, metavar="N", help=sample)
    add("--size", type=_count, metavar="K", help="classes of a random set (default: 2)")
    _features(parser)
    parser.add_argument("--seed", type=_seed, help="seed of the random sets")
    _jobs(parser)
    parser.add_argument("--out", help="folder for the answers and their evidence")
    layer = "write the layer, too, as the independent checker reads it"
    parser.add_argument("--with-layer", action="store_true", help=layer)
    _json(parser)


def _coverage(parser: argparse.ArgumentParser) -> None:
    _model(parser)
    add = parser.add_argument
    add("--text", type=Path, required=True, metavar="FILE", help="the text, in UTF-8")
    capped = "also say which characters never reach this probability"
    add("--below", type=float, metavar="P", help=capped)
    _features(parser)
    _work(parser)
    add("--out", help="folder for the table and the proofs")
    _json(parser)


def _diff(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", type=Path, help="folder of results")
    parser.add_argument("b", type=Path, help="folder of results")
    changed = "exit with 4 when a verdict changed, or a token came or went"
    parser.add_argument("--exit-code", action="store_true", help=changed)
    _json(parser, "print as JSON, with all tokens")


def _prune(parser: argparse.ArgumentParser) -> None:
    _model(parser)
    _features(parser)
    _work(parser)
    add = parser.add_argument
    new = "new file: .onnx from an ONNX model, .npz or .safetensors (the layer) from any"
    add("--out", type=Path, required=True, help=new)
    add("--results", help="folder of a finished scan of this model, instead of scanning now")
    longest = "features have at most this norm: rounding then proves more classes safe to cut"
    add("--longest", type=float, help=longest)
    close = "also cut classes that trail by less than float32 rounding"
    add("--close-too", action="store_true", help=close)


def _repair(parser: argparse.ArgumentParser) -> None:
    _model(parser)
    parser.add_argument("--method", choices=["bias", "unit-norm"], help="default: bias")
    new = "new file: .onnx from an ONNX model with a bias, .npz or .safetensors from any"
    parser.add_argument("--out", type=Path, required=True, help=new)


def _survey(parser: argparse.ArgumentParser) -> None:
    models = "files, folders, hub ids or released models"
    parser.add_argument("models", nargs="+", metavar="MODEL", help=models)
    _features(parser)
    _work(parser)
    _json(parser)


_OPTIONS = {
    "inspect": _inspect, "scan": _scan, "verify": _verify, "explain": _explain,
    "ceiling": _ceiling, "ask": _ask, "coverage": _coverage, "diff": _diff,
    "prune": _prune, "repair": _repair,
    "survey": _survey,
}  # fmt: skip


def _json(parser: argparse.ArgumentParser, what: str = "print as JSON") -> None:
    parser.add_argument("--json", action="store_true", help=what)


def _model(parser: argparse.ArgumentParser) -> None:
    """The model and how its layer is found."""
    formats = ".npz .npy .onnx .safetensors .gguf .tflite .pkl .pt .bin .pdiparams"
    others = "a model folder, a hub id, or a released model such as ppocr-v6"
    parser.add_argument("model", help=f"{formats}, {others}")
    add = parser.add_argument_group("the layer").add_argument
    add("--weight", help="name of the weight tensor; its sibling bias is taken along")
    add("--bias", help="bias tensor, if not named like the weight")
    add(
        "--no-bias", "--without-bias", dest="without_bias", action="store_true", help="leave it out"
    )
    names = "file of class names: one a line, JSON, or tokenizer.json"
    add("--tokens", "--labels", dest="tokens", help=names)
    where = "where the blank is that the names lack; none: the first name is that of class 0"
    add("--blank", choices=["first", "last", "none"], help=where)
    add("--revision", help="branch, tag or commit on the hub")
    rule = "the largest score wins, or each label above 0 is on (default: what the model does)"
    add("--rule", choices=["argmax", "threshold"], help=rule)


def _features(parser: argparse.ArgumentParser) -> None:
    """Where the layer's inputs lie."""
    add = parser.add_argument_group("where the layer's inputs lie").add_argument
    auto = "what the step before the layer allows (ReLU, Swish, tanh, a normalisation)"
    kinds = ["box", "auto", "norm", "ball", "unbounded"]
    add("--features", choices=kinds, help=f"default: box; auto: {auto}, inside the box")
    add("--bound", type=float, help="of the box, or radius of the ball (default: 100)")
    low = "lower bound of the box where it differs, such as -0.2785 after Swish"
    add("--low", type=float, help=low)
    after = "activation before the layer, such as relu or swish, when the file does not show it"
    add("--after", metavar="STEP", help=after)


def _work(parser: argparse.ArgumentParser) -> None:
    """How a scan's work is done."""
    group = _workers(parser)
    block = "classes that a worker takes at a time: fewer need less memory (default: 1024)"
    group.add_argument("--block", type=_count, help=block)


def _workers(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Who does the work."""
    group = parser.add_argument_group("how the work is done")
    _jobs(group)
    backends = ["loky", "dask", "threading"]
    group.add_argument("--backend", choices=backends, help="how workers run (default: loky)")
    scheduler = "address of a Dask scheduler"
    group.add_argument("--scheduler", "--address", dest="address", help=scheduler)
    group.add_argument("--seed", type=_seed, help="seed of every random choice (default: 0)")
    return group


def _jobs(parser: argparse._ActionsContainer) -> None:
    jobs = "parallel workers (default: 1)"
    parser.add_argument("--jobs", "--n-jobs", dest="n_jobs", type=_count, help=jobs)


def _seed(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise argparse.ArgumentTypeError(f"{text!r:.40} is not a whole number of 0 or more")
    return int(text)


def _count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", text) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return int(text)

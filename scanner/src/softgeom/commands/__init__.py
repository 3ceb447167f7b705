"""The command line: one file a verb.

Results go to standard output, progress and errors to standard error; `boundary.py` lists the exit
codes.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Collection, Sequence
from importlib import import_module
from typing import NoReturn

from softgeom.commands.boundary import WRONG, guarded, one_line, open_streams

VERBS = {
    "inspect": "list what a file holds that could be a softmax layer, as commands to copy",
    "scan": "find the outputs that a model can never produce, each proven",
    "verify": "re-check every proof of a folder of results, without a solver",
    "explain": "why a class can never win, or an input at which it does",
    "ceiling": "how probable an output can ever become, whatever the input",
    "ask": "more questions: candidates, rankings, sets of documents or labels, experts",
    "diff": "what changed between two scans",
    "prune": "the same model without outputs that can never be the answer",
    "repair": "a layer in which every class can win",
    "survey": "several models in one table",
    "completion": 'print a completion script: eval "$(softgeom completion bash)"',
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    closed = open_streams()
    return run(parse(arguments)) if closed is None else closed


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """What a command line asks for; SystemExit with one sentence where it is wrong."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    return parser_for(words[:1]).parse_args(words)


def run(parsed: argparse.Namespace) -> int:
    """Run what was parsed: the exit code. A scan leaves its folder in `parsed.folder`."""
    return guarded(lambda: _run(parsed))


def _run(parsed: argparse.Namespace) -> int:
    logger = logging.getLogger("softgeom")
    if not logger.handlers and not logging.getLogger().handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_OneLine("softgeom: %(message)s"))
        logger.addHandler(handler)
    return int(parsed.run(parsed))


class _OneLine(logging.Formatter):
    """A warning as one line: it may hold names from a file."""

    def format(self, record: logging.LogRecord) -> str:
        return one_line(super().format(record))


class _Parser(argparse.ArgumentParser):
    """A parser whose complaints are one sentence: what is wrong, and where help is."""

    def error(self, message: str) -> NoReturn:
        what = f"{self.prog}: {one_line(message)}; `{self.prog} --help` lists what there is.\n"
        self.exit(WRONG, what)


def parser_for(verbs: Collection[str]) -> argparse.ArgumentParser:
    """The parser, with the options of these verbs alone: what a verb needs is imported for it, so
    that ``--help``, ``--version`` and a mistyped verb cost nothing.
    """
    from softgeom import __version__

    parser = _Parser(
        prog="softgeom",
        description="The geometry of softmax: what can this model never say?",
        epilog="A first model to try: softgeom scan g2pm",
    )
    parser.add_argument("--version", action="version", version=f"softgeom {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for verb, about in VERBS.items():
        options = commands.add_parser(verb, help=about)
        if verb in verbs:
            import_module(f"softgeom.commands.{verb}").add(options)
    return parser

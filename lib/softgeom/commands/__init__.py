"""The command line: one file a verb.

==========  ==================================================================================================
inspect     which layers a file holds, their names, biases and activations, as commands to copy
scan        which outputs the model can never produce, each verdict proven
verify      every proof of a folder of results again, without a solver
explain     why a class can never win, or an input at which it does
ask         candidates, rankings, sets of documents or labels, experts: which are possible, each proven
diff        what changed between two scans
prune       the same model without outputs that can never be the answer
repair      a layer in which every class can win
survey      several models in one table
==========  ==================================================================================================

Results go to standard output, progress and errors to standard error; `boundary.py` lists the exit
codes.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from typing import NoReturn

from softgeom.commands.boundary import WRONG, guarded, one_line, open_streams


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    closed = open_streams()
    return run(parse(arguments)) if closed is None else closed


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """What a command line asks for; SystemExit with one sentence where it is wrong."""
    return _parser().parse_args(arguments)


def run(parsed: argparse.Namespace) -> int:
    """Run what was parsed; the exit code. A scan leaves the folder of its results in
    `parsed.folder`.
    """
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
    """A parser whose complaints are one sentence, as all others are: what is wrong, and where help
    is.
    """

    def error(self, message: str) -> NoReturn:
        self.exit(
            WRONG, f"{self.prog}: {one_line(message)}; `{self.prog} --help` lists what there is.\n"
        )


def _parser() -> argparse.ArgumentParser:
    from softgeom import __version__
    from softgeom.commands import (
        ask,
        completion,
        diff,
        explain,
        inspect,
        prune,
        repair,
        scan,
        survey,
        verify,
    )

    parser = _Parser(
        prog="softgeom",
        description="The geometry of softmax: what can this model never say?",
        epilog="A first model to try: softgeom scan g2pm",
    )
    parser.add_argument("--version", action="version", version=f"softgeom {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for module in (inspect, scan, verify, explain, ask, diff, prune, repair, survey, completion):
        module.add(commands)
    return parser

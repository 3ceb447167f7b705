"""Command line of the compendium's tools: what the Makefile calls."""

import argparse
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from compendium import paths
from softgeom.commands.boundary import guarded

_PROFILE = "smoke, default, full, paper, or own/NAME for notebooks/params/own/NAME.yaml"

# name -> what it does, and its arguments; one given as a text is what make passes in this variable
_COMMANDS: dict[str, tuple[Callable[[argparse.Namespace], int | None], dict[str, Any]]] = {}


def main(arguments: list[str] | None = None) -> int:
    """Run one command; every failure ends in one sentence and an exit code."""
    parser = argparse.ArgumentParser(prog="python -m compendium", description=__doc__)
    commands = parser.add_subparsers(required=True)
    for name, (action, given) in _COMMANDS.items():
        sub = commands.add_parser(name, help=action.__doc__)
        sub.set_defaults(action=action)
        profile = os.environ.get("SOFTGEOM_PROFILE") or "default"
        sub.add_argument("--profile", default=profile, help=_PROFILE)
        for argument, how in given.items():
            if isinstance(how, str):  # by the environment no shell reads it as code
                optional = {} if argument.startswith("-") else {"nargs": "?"}
                how = optional | {"default": os.environ.get(how, "")}
            sub.add_argument(argument, **how)
    options = parser.parse_args(arguments)
    return guarded(lambda: options.action(options) or 0, "error")


def _command(arguments: dict[str, Any] | None = None) -> Callable[[Any], Any]:
    """Make a function a command of its name; its docstring is the help."""

    def register(action: Any) -> Any:
        _COMMANDS[action.__name__.strip("_").replace("_", "-")] = action, arguments or {}
        return action

    return register


@_command()
def check(options: argparse.Namespace) -> int:
    """compare results with the papers' numbers, and verdicts with the committed ones"""
    from compendium import check, findings

    rows = check.compare(options.profile)
    print(check.render(rows))
    changes, counts = findings.changes(options.profile)
    print("\n".join(["", *changes, counts]))
    if not any(paths.executed_dir(options.profile).glob("[0-9]*.json")):
        told = "these are the committed results themselves; `make all` makes them again"
        print(f"nothing has run here in profile {options.profile}: {told}")
    return int(any(row.verdict == "DIFFERENT" for row in rows) or bool(changes))


@_command({"--check": {"action": "store_true", "help": "only say which are not up to date"}})
def render_readme(options: argparse.Namespace) -> None:
    """write recorded numbers into README.md and docs, the pages of the papers, the verdicts"""
    from compendium.pages import readme

    if not options.check:
        readme.write()
    elif stale := readme.stale():
        raise ValueError(f"{', '.join(stale)} do not show the committed results: run `make readme`")


@_command()
def codecheck(options: argparse.Namespace) -> None:
    """print codecheck.yml, the list of committed figures and tables that goes with a release"""
    from compendium.pages import readme

    print(readme.manifest(), end="")


@_command()
def site(options: argparse.Namespace) -> None:
    """build the site from the committed results; nothing is executed"""
    from compendium.pages import site

    print(f"the site: {site.build().relative_to(paths.root())}")


@_command(
    {
        "seeds": {"nargs": "*", "type": int, "help": "such as 1 2 3; all by default"},
        "--setting": {"default": "full", "help": "full, small (a lesson's one run), tiny, paper"},
    }
)
def sweep(options: argparse.Namespace) -> None:
    """train the runs of the barrier sweep that have no row in results/full/barrier_sweep"""
    from compendium.models import barrier_sweep

    name, runs = options.setting, barrier_sweep.schedule(options.seeds or barrier_sweep.SEEDS)
    if name == "small":
        runs = [run for run in runs if run.name == f"penalty-{barrier_sweep.WEIGHT:g}-1"]
    written = barrier_sweep.work(runs, barrier_sweep.SETTINGS[name], barrier_sweep.folder(name))
    print(f"{written} runs written; there are {len(runs)}")


@_command({"chosen": {"nargs": "*", "help": "papers (003), notebooks or ids; all by default"}})
def claims(options: argparse.Namespace) -> None:
    """print claims: the source's sentence beside ours, the rule, the verdict"""
    from compendium import findings

    print(findings.in_words(options.chosen or shlex.split(os.environ.get("ONLY", ""))))


@_command()
def check_claims(options: argparse.Namespace) -> None:
    """check the register, its pointers, and what notebooks pass to it"""
    from compendium import claims

    register, faults = claims.read(paths.root() / "data" / "claims")
    misuses, unknown = claims.check(register, paths.notebooks())
    faults += claims.faults_of_pointers(register) + misuses
    print("".join(f"note: {line}\n" for line in unknown), end="")
    print("".join(f"{line}\n" for line in faults), end="", file=sys.stderr)
    if faults:
        raise ValueError(f"{len(faults)} faults in the register, its pointers or its calls")
    examples = sum(len(claim.examples) for claim in register.values())
    print(f"{len(register)} claims, {examples} examples: all sound")


@_command({"paper": {"help": "such as 003"}, "sentence": {"help": "as the text has it"}})
def pointer(options: argparse.Namespace) -> None:
    """find the pointer of a sentence of a source"""
    from compendium import claims

    found, times = claims.find(options.paper, options.sentence)
    print(f"sentence: {found}" + (f"  # occurs {times} times" if times > 1 else ""))


@_command({"model": "MODEL", "--out": "OUT", "--arguments": "ARGS"})
def scan(options: argparse.Namespace) -> int:
    """scan a model and write its report as a notebook"""
    from compendium import parameters, profiles, run
    from softgeom import commands
    from softgeom.commands import boundary
    from softgeom.options import LayerOptions, loaded, split
    from softgeom.results import folder_for

    if not options.model:
        known = "a file, a folder, a hub id or a released model"
        raise ValueError(f"which model? give {known}: make scan MODEL=ppocr-v4")
    # a path is the caller's, so it is resolved here; a hub id is left alone
    local = Path(options.model).expanduser()
    model = str(local.resolve()) if local.exists() else options.model
    try:
        words = shlex.split(options.arguments)
    except ValueError as error:
        raise ValueError(f"ARGS={options.arguments!r} cannot be read ({error})") from None
    if options.out:
        words += ["--out", str(Path(options.out).expanduser().resolve())]
    values = parameters.override(os.environ.get("PARAMS", ""), "scan")
    if taken := sorted({"model", "out", "arguments", "scanned"} & values.keys()):
        raise ValueError(f"PARAMS: {', '.join(taken)} is given by MODEL=, OUT= and ARGS=")
    asked = commands.parse(["scan", model, *words])
    code = commands.run(asked)
    if code not in (boundary.DONE, boundary.UNDECIDED, boundary.TOO_MANY):
        return code
    layer = loaded(model, **split(vars(asked), LayerOptions)[0]).layer
    written = folder_for(getattr(asked, "out", None), model, layer)
    folder = written.resolve()
    given = {"model": model, "out": str(folder), "arguments": shlex.join(words), "scanned": True}
    values |= given | {"profile": profiles.DEFAULT}
    run.execute(paths.notebook("scan"), folder / "scan.ipynb", values)
    print(f"verdicts, summary and pictures: {options.out or written}")
    return code


if __name__ == "__main__":
    sys.exit(main())

"""Command line of the compendium's tools: what the Makefile calls."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path

from compendium import paths, strip
from softgeom.commands.boundary import guarded
from softgeom.orphans import end_with_make


def main(arguments: list[str] | None = None) -> int:
    """Run one command; every failure ends in one sentence and an exit code
    (`softgeom.commands.boundary`).
    """
    strip.skip_rfc3987_import()  # papermill and the site read notebooks, too
    options = _parser().parse_args(arguments)
    if options.action is not _all:  # which forks, and so has no thread
        end_with_make()
    return guarded(lambda: options.action(options) or 0, "error")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m compendium", description=__doc__)
    commands = parser.add_subparsers(required=True)

    def command(name: str, action, help: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=help)
        sub.add_argument(
            "--profile",
            default=os.environ.get("SOFTGEOM_PROFILE") or "default",
            help="smoke, default, models, hour, paper, or own/NAME for params/own/NAME.yaml",
        )
        sub.set_defaults(action=action)
        return sub

    command(
        "run", _run, "execute one notebook; the environment variable PARAMS changes parameters"
    ).add_argument("name")
    every = command("all", _all, "execute notebooks that are not up to date, and what they need")
    every.add_argument("names", nargs="*", help="notebooks or chapters; all when none is named")
    every.add_argument("--jobs", type=int, default=2, help="how many at a time")
    command("check-params", _check_params, "check the parameters of every notebook in a profile")
    command(
        "check",
        _check,
        "compare results with the papers' numbers, and verdicts with the committed ones",
    )
    render = command(
        "render-readme",
        _render_readme,
        "write recorded numbers into README.md and docs, the gallery, the verdicts, codecheck.yml",
    )
    render.add_argument("--check", action="store_true", help="only say which are not up to date")
    command("report", _report, "build the site from the executed notebooks")
    chosen = command(
        "claims", _claims, "print claims: the source's sentence beside ours, the rule, the verdict"
    )
    chosen.add_argument(
        "chosen",
        nargs="*",
        default=shlex.split(os.environ.get("ONLY", "")),
        help="papers (003), notebooks (24_robustness) or ids; all when none is named",
    )
    command(
        "check-claims",
        _check_claims,
        "check the register, its pointers, and what notebooks pass to it",
    )
    pointer = command("pointer", _pointer, "find the pointer of a sentence of a source")
    _given(pointer, "paper", "PAPER")
    _given(pointer, "sentence", "SENTENCE")
    _given(command("why", _why, "say why make would run a notebook, or not"), "name", "NAME")
    derived = command("edges", _edges, "draw which notebook needs which (Mermaid)")
    derived.add_argument(
        "--check",
        action="store_true",
        help="only compare with what executed notebooks were seen to read",
    )
    command("site", _site, "build the site from the committed results; nothing is executed")
    scan = command("scan", _scan, "scan a model and write its report as a notebook")
    _given(scan, "model", "MODEL")
    scan.add_argument("--out", default=os.environ.get("OUT"))
    scan.add_argument(
        "--arguments",
        default=os.environ.get("ARGS", ""),
        help="options of softgeom scan, in one word",
    )
    return parser


def _given(parser: argparse.ArgumentParser, name: str, variable: str) -> None:
    """An argument that make passes by the environment, where no shell reads it as code."""
    parser.add_argument(name, nargs="?", default=os.environ.get(variable, ""))


def _run(options: argparse.Namespace) -> int:
    from compendium import runner

    return runner.run_alone(options.name, options.profile, os.environ.get("PARAMS", ""))


def _all(options: argparse.Namespace) -> None:
    from compendium import schedule

    overrides = os.environ.get("PARAMS", "")
    schedule.run(options.names, options.profile, max(1, options.jobs), overrides)


def _check_params(options: argparse.Namespace) -> None:
    from compendium import parameters

    parameters.check(options.profile)


def _claims(options: argparse.Namespace) -> None:
    from compendium import telling

    print(telling.render(options.chosen))


def _check_claims(options: argparse.Namespace) -> None:
    from compendium import claims

    register, faults = claims.read(paths.root() / "claims")
    misuses, unknown = claims.check(register, paths.notebooks())
    faults += claims.faults_of_pointers(register) + misuses
    for line in unknown:
        print(f"note: {line}")
    for line in faults:
        print(line, file=sys.stderr)
    if faults:
        raise ValueError(f"{len(faults)} faults in the register, its pointers or its calls")
    examples = sum(len(claim.examples) for claim in register.values())
    print(f"{len(register)} claims, {examples} examples: all sound")


def _pointer(options: argparse.Namespace) -> None:
    from compendium import claims

    found, times = claims.find(options.paper, options.sentence)
    print(f"sentence: {found}" + (f"  # occurs {times} times" if times > 1 else ""))


def _check(options: argparse.Namespace) -> int:
    from compendium import agreement, check, findings, runs

    rows = check.compare(options.profile)
    print(check.render(rows))
    changes, counts = findings.changes(options.profile)
    print("\n".join(["", *changes, counts]))
    disagreeing = agreement.faults()
    print("\n".join([*disagreeing, f"{len(disagreeing)} disagreements between places"]))
    if not runs.ran(options.profile):
        print(
            f"nothing has run here in profile {options.profile}: these are the committed results "
            f"themselves; `make all` makes them again"
        )
    return int(any(row.verdict == "DIFFERENT" for row in rows) or bool(changes or disagreeing))


def _render_readme(options: argparse.Namespace) -> None:
    from compendium.pages import rendered

    if not options.check:
        rendered.write()
    elif stale := rendered.stale():
        raise ValueError(f"{', '.join(stale)} do not show the committed results: run `make readme`")


def _report(options: argparse.Namespace) -> None:
    # Sphinx and pandas' readers are not needed by the other commands
    from compendium.pages import report

    page = report.build(options.profile)
    print(f"the report: {page.relative_to(paths.root())}")


def _site(options: argparse.Namespace) -> None:
    from compendium.pages import report

    print(f"the site: {report.build_committed().relative_to(paths.root())}")


def _why(options: argparse.Namespace) -> None:
    from compendium import why

    print(why.explain(options.name, options.profile))


def _edges(options: argparse.Namespace) -> None:
    from compendium import schedule, why

    if not options.check:
        print(schedule.draw())
        return
    notes = paths.executed_dir(options.profile).glob("[0-9]*.json")
    seen = [path for path in notes if "." not in path.stem]
    for path in seen:
        if missed := why.undeclared_reads(path.stem, options.profile):
            raise ValueError(
                f"{path.stem} read {', '.join(missed)}, which its edges do not name: make "
                f"would not see a change (lib/compendium/edges.py)"
            )
    print(
        f"the edges name everything that {len(seen)} executed notebooks of profile "
        f"{options.profile} were seen to read"
    )


def _scan(options: argparse.Namespace) -> int:
    """`softgeom scan` with every option as it was given (ARGS), then its pictures as a notebook
    beside the results.
    """
    from compendium import parameters, profiles, runner
    from softgeom import commands
    from softgeom.commands import boundary

    if not options.model:
        raise ValueError(
            "which model? give a file, a folder, a hub id or a released model: make scan "
            "MODEL=ppocr-v4"
        )
    # A path is the caller's, so it is resolved here; a hub id is left alone.
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
    folder = asked.folder.resolve()
    given = {"model": model, "out": str(folder), "arguments": shlex.join(words), "scanned": True}
    runner.execute(
        paths.notebook("scan"), folder / "scan.ipynb", values | given | {"profile": profiles.LAB}
    )
    print(f"verdicts, summary and pictures: {options.out or asked.folder}")
    return code


if __name__ == "__main__":
    sys.exit(main())

"""Command line of the compendium's tools; the Makefile is its only regular user."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from compendium import check, claims, findings, parameters, paths, rendered, runner, telling


def main(arguments: list[str] | None = None) -> int:
    """Run one command; every failure that a user can cause ends in one sentence and status 1."""
    options = _parser().parse_args(arguments)
    try:
        return options.action(options)
    except runner.NotebookError as error:
        print(f"\n{error}", file=sys.stderr)
    except (ValueError, FileNotFoundError) as error:
        print(f"error: {error}", file=sys.stderr)
    except KeyError as error:
        print(f"error: {error.args[0]}", file=sys.stderr)
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m compendium", description=__doc__)
    commands = parser.add_subparsers(required=True)

    def command(name: str, action, help: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=help)
        sub.add_argument(
            "--profile",
            default="default",
            help="smoke, default, hour, paper, or own/NAME for the file params/own/NAME.yaml",
        )
        sub.set_defaults(action=action)
        return sub

    command("run", _run, "execute one notebook; the environment variable PARAMS changes parameters").add_argument(
        "name"
    )
    command(
        "check-params",
        _check_params,
        "check the parameters of every notebook in a profile and write them to build/params",
    )
    command("check", _check, "compare results with the papers' numbers, and verdicts with the committed ones")
    render = command(
        "render-readme",
        _render_readme,
        "write recorded numbers into README.md and docs, the gallery, the verdicts, codecheck.yml",
    )
    render.add_argument("--check", action="store_true", help="only say which of them are not up to date")
    command("report", _report, "build the site from the executed notebooks")
    chosen = command("claims", _claims, "print claims: the source's sentence beside ours, the rule, the verdict")
    chosen.add_argument(
        "chosen", nargs="*", help="papers (003), notebooks (24_robustness) or ids; all when none is named"
    )
    command("check-claims", _check_claims, "check the register, its pointers, and what notebooks pass to it")
    pointer = command("pointer", _pointer, "find the pointer of a sentence of a source")
    pointer.add_argument("paper")
    pointer.add_argument("sentence")
    command("site", _site, "build the site from the committed results; nothing is executed")
    scan = command("scan", _scan, "scan a model and write its report as a notebook")
    scan.add_argument("model")
    scan.add_argument("--out", default="scans/model")
    return parser


def _run(options: argparse.Namespace) -> int:
    runner.run(options.name, options.profile, os.environ.get("PARAMS", ""))
    return 0


def _check_params(options: argparse.Namespace) -> int:
    parameters.write_resolved(options.profile)
    return 0


def _claims(options: argparse.Namespace) -> int:
    print(telling.told(options.chosen))
    return 0


def _check_claims(options: argparse.Namespace) -> int:
    register, faults = claims.read(paths.root() / "claims")
    notebooks = sorted(paths.notebook("x").parent.glob("[0-9]*.ipynb"))
    misuses, unknown = claims.check(register, notebooks)
    faults += claims.faults_of_pointers(register) + misuses
    for line in unknown:
        print(f"note: {line}")
    if faults:
        raise ValueError("\n".join(faults))
    print(f"{len(register)} claims, {sum(len(claim.examples) for claim in register.values())} examples: all sound")
    return 0


def _pointer(options: argparse.Namespace) -> int:
    found, times = claims.find(options.paper, options.sentence)
    print(f"sentence: {found}" + (f"  # occurs {times} times" if times > 1 else ""))
    return 0


def _check(options: argparse.Namespace) -> int:
    rows = check.compare(options.profile)
    print(check.render(rows))
    changes, counts = findings.changes(options.profile)
    print("\n".join(["", *changes, counts]))
    return int(any(row.verdict == "DIFFERENT" for row in rows) or bool(changes))


def _render_readme(options: argparse.Namespace) -> int:
    if not options.check:
        rendered.write()
    elif stale := rendered.stale():
        raise ValueError(f"{', '.join(stale)} do not show the committed results: run `make readme`")
    return 0


def _report(options: argparse.Namespace) -> int:
    from compendium import report  # Sphinx and pandas' readers are not needed by the other commands

    page = report.build(options.profile)
    print(f"the report: {page.relative_to(paths.root())}")
    return 0


def _site(options: argparse.Namespace) -> int:
    from compendium import report

    print(f"the site: {report.build_committed().relative_to(paths.root())}")
    return 0


def _scan(options: argparse.Namespace) -> int:
    # A path is the caller's, so it is resolved here; a hub id is left alone.
    local = Path(options.model).expanduser()
    model = str(local.resolve()) if local.exists() else options.model
    out = Path(options.out).expanduser().resolve()
    out.mkdir(parents=True, exist_ok=True)
    runner.execute(paths.notebook("scan"), out / "scan.ipynb", {"model": model, "out": str(out), "profile": "lab"})
    print(f"verdicts, summary and report: {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

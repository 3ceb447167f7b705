"""What a notebook found: tables, figures, values and claims, written with everything needed to
judge and repeat them.

Committed per run, under `results/<profile>/<notebook>/`: the tables as CSV, and `record.json`. What
changes at each run goes to `executed/<profile>/<notebook>.json`, which git ignores: an identical
rerun leaves the repository clean. A run on stand-in data writes into a subfolder `stand-in`, one on
real data that lacks an optional source of the committed run into `incomplete`, never over results
from real and whole data.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pandas as pd

from compendium import claims, markdown, paths, profiles, tolerance
from compendium.claims import Judgement
from compendium.claims.rule import VERDICTS
from compendium.notebooks import parameter_defaults
from compendium.parameters import read
from compendium.run import with_maker
from softgeom.source import Source
from softgeom.writing import write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STAND_IN, INCOMPLETE = ASIDE = "stand-in", "incomplete"

# all digits that mean something, and none of those that differ between processors
_FLOAT_FORMAT = "%.10g"
_PACKAGES = "numpy scipy pandas matplotlib sympy highspy scikit-learn torch onnxruntime".split()


def open_book(name: str, variables: Mapping[str, Any], sources: Iterable[Source] = ()) -> Run:
    """Open the record of a notebook by its name (`10_braid_counts`), with what its `globals()` say
    of `profile` and of the names that its cell tagged `parameters` assigns; ValueError when one of
    these is missing.
    """
    names = parameter_defaults(paths.notebook(name))
    if missing := [key for key in names if key not in variables]:
        lost = ", ".join(missing)
        raise ValueError(f"{name}: the parameters {lost} are not defined; run their cell first")
    parameters = {key: variables[key] for key in names if key != "profile"}
    profile = _profile_of(name, str(variables["profile"]), parameters)
    run = Run(name, profile, parameters, tuple(sources))
    _show(run.opening)
    return run


def _profile_of(name: str, profile: str, parameters: dict[str, Any]) -> str:
    """The profile; `own/PROFILE` when a value was changed by hand, which replaces no results."""
    if profile not in profiles.BUILT_IN or not paths.params_file(name).is_file():
        return profile
    return profile if parameters == read(name, profile) else profiles.overridden(profile)


class Run:
    """The open record of one notebook; `open_book` makes it, `save` closes it. `noise` is the size
    of what is rounding, relative to numbers above one: more where a stopped search leaves more.
    """

    noise: float = tolerance.ABSOLUTE

    def __init__(
        self, name: str, profile: str, parameters: dict[str, Any], sources: tuple[Source, ...]
    ):
        self.name, self.profile, self.parameters, self.sources = name, profile, parameters, sources
        self.stand_in = any(source.stand_in for source in sources)
        absent = list[str]()  # sources of the committed results, which this run must not replace
        committed = paths.results_dir(profile, name) / "record.json"
        if not self.stand_in and profile in profiles.COMMITTED and committed.is_file():
            known = json.loads(committed.read_text(encoding="utf-8"))["sources"]
            absent = sorted({source["name"] for source in known} - {s.name for s in sources})
        self._absent = ", ".join(absent)
        suffix = (STAND_IN,) if self.stand_in else (INCOMPLETE,) if absent else ()
        self.results = paths.results_dir(profile, name).joinpath(*suffix)
        self.figures = paths.figures_dir(profile).joinpath(*suffix)
        self._tables: dict[str, str] = {}
        self._figures: dict[str, dict[str, str]] = {}
        self._values: dict[str, dict[str, Any]] = {}
        self._claims: dict[str, Judgement] = {}
        self._conclusion = ""
        self._started = time.time()

    @property
    def opening(self) -> str:
        """Profile, data, what is missing beside the committed run, and the folder of the run."""
        data = "; ".join(dict.fromkeys(map(str, self.sources))) or "none"
        lacks = f" Missing, unlike in the committed run: {self._absent}." * bool(self._absent)
        where = self.results.relative_to(paths.root()).as_posix()
        told = markdown.plain(f"Data: {data}.{lacks}")
        return f"Profile **{self.profile}**. {told} Results: `{where}`."

    def table(self, name: str, frame: pd.DataFrame, caption: str = "") -> pd.DataFrame:
        """Write a table as CSV, its index if it is named, show its caption and first rows, and
        return it; as the last word of this cell it is not shown twice.
        """
        if not isinstance(frame, pd.DataFrame):
            kind = type(frame).__name__
            raise TypeError(f"table {name!r} must be a pandas DataFrame, not {kind}")
        self.results.mkdir(parents=True, exist_ok=True)
        named = any(level is not None for level in frame.index.names)
        text = frame.to_csv(index=named, float_format=_FLOAT_FORMAT, lineterminator="\n")
        tolerance.write(self.results / f"{name}.csv", text, self.noise)
        self._tables[name] = caption
        _show(markdown.captioned(frame, caption or name))
        return _Shown(frame)

    def figure(
        self,
        name: str,
        fig: Figure,
        *,
        caption: str,
        alt: str,
        sources: Iterable[Source] | None = None,
        claims: Iterable[str] = (),
    ) -> None:
        """Write a figure as PNG and, outside the smoke profile, as PDF, with its sources printed
        under it. `alt` is what somebody who cannot see it needs to know, `sources` what *it* shows,
        where that is not all that the notebook read. The headline ends in the verdict on `claims`,
        judged before, where one is not confirmed or open, and the caption says so. On a stand-in
        the headline says that, and nothing else.
        """
        from compendium import style

        shown = self.sources if sources is None else tuple(sources)
        said = self._said(claims)
        if headline := self._headline(" ".join(fig.get_suptitle().split()), shown, said):
            style.headline(fig, headline)
        caption += f" The paper's claim is {said} on this run." if said else ""
        metadata: dict[str, Any] = {"notebook": self.name, "parameters": self.parameters}
        metadata["sources"] = [asdict(source) for source in shown]
        note = "data: " + "; ".join(dict.fromkeys(map(str, shown))) if shown else ""
        pdf = self.profile != profiles.SMOKE
        with TemporaryDirectory() as folder:
            path = Path(folder) / f"{self.name}-{name}"
            fresh = style.save_figure(fig, path, alt=alt, note=note, metadata=metadata, pdf=pdf)
            tolerance.move_pictures(fresh, self.figures)
        self._figures[name] = {"caption": caption, "alt": alt}
        if headline:
            self._figures[name]["headline"] = headline
        _show_figure(fig, caption)

    def _said(self, claims: Iterable[str]) -> str:
        """The verdicts on claims that are not confirmed or open, in words."""
        found = {self.verdict(id) for id in claims}
        return " and ".join(verdict for verdict in VERDICTS[1:] if verdict in found)

    @staticmethod
    def _headline(drawn: str, shown: Iterable[Source], said: str) -> str:
        """What a headline may say: nothing of a paper on stand-ins, no more than verdicts allow."""
        replaced = dict.fromkeys(source.name for source in shown if source.stand_in)
        if drawn and replaced:
            return f"Stand-in data, no finding: {', '.join(replaced)}"
        return f"{drawn} ({said})" if drawn and said else drawn

    def value(
        self, name: str, value: Any, *, about: str = "", low: Any = None, high: Any = None
    ) -> Any:
        """Record one number (or text) under a name, with its interval, and return it."""
        entry = {"value": _plain(value), "about": about, "low": _plain(low), "high": _plain(high)}
        self._values[name] = {key: item for key, item in entry.items() if item not in (None, "")}
        return value

    def claim(self, id: str, **evidence: Any) -> None:
        """Judge a claim of the register from the evidence: a number, truth value or text for each
        name of its rule, None where something could not be measured; record and show what came out.
        ValueError when the register has no such claim, or evidence is missing, misspelt or NaN.
        """
        stated = claims.load()[id]
        self._claims[id] = stated.rule.judge(id, evidence, stand_in=self.stand_in)
        _show(markdown.claim(stated, self._claims[id]))

    def verdict(self, id: str) -> str:
        """The verdict on a claim that was judged before, for the prose that closes a notebook."""
        return self._claims[id].verdict

    def conclude(self, seen: str) -> None:
        """Record and show what was seen: Markdown, its numbers and verdicts filled in by the
        caller, so that it is true of this run, whatever data it read. It closes the record.
        """
        self._conclusion = seen.strip()
        self.save()
        _show(f"## What we see\n\n{self._conclusion}")

    def save(self) -> None:
        """Write `record.json` and the note on this execution; on a stand-in, say so."""
        self.results.mkdir(parents=True, exist_ok=True)
        torch = sys.modules.get("torch")  # not imported to ask: that takes seconds
        cuda = torch is not None and torch.cuda.is_available()
        record = {
            "notebook": self.name,
            "profile": self.profile,
            "parameters": {key: _plain(value) for key, value in self.parameters.items()},
            "sources": [asdict(source) for source in self.sources],
            "versions": _versions(),
            "device": torch.cuda.get_device_name() if torch and cuda else "cpu",
            "values": self._values,
            "claims": [_plain(asdict(claim)) for claim in self._claims.values()],
            "tables": self._tables,
            "figures": self._figures,
        }
        if self._conclusion:
            record["conclusion"] = self._conclusion
        tolerance.write(self.results / "record.json", _json(record), self.noise)
        execution = {
            "results": self.results.relative_to(paths.root()).as_posix(),
            "commit": _commit(),
            "seconds": round(time.time() - self._started, 1),
            "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "host": platform.platform(),
            "python": platform.python_version(),
            "cores": os.cpu_count(),
        }
        write_text(paths.executed_dir(self.profile) / f"{self.name}.json", _json(execution))
        if self.stand_in:
            names = ", ".join(source.name for source in self.sources if source.stand_in)
            told = "the numbers of prose that describes real data are not those of this run"
            said = f"**This run read a stand-in ({names}):** {told}, and no experiment is judged."
            _show(said)


class _Shown(pd.DataFrame):
    """A table that has shown itself: the cell that made it does not show it again."""

    _cell: int | None = -1  # no cell, as after a journey through another process

    def __init__(self, frame: pd.DataFrame) -> None:
        super().__init__(frame)  # type: ignore[call-arg]  # the stubs know __new__ alone
        object.__setattr__(self, "_cell", _cell())

    @property
    def _constructor(self) -> Callable[..., pd.DataFrame]:
        return pd.DataFrame  # what is computed from it is a table like any other

    def _ipython_display_(self) -> None:
        from IPython.display import display

        if self._cell != _cell():
            display(pd.DataFrame(self))


def _cell() -> int | None:
    """Number of the running cell; None outside a notebook."""
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    return None if shell is None else shell.execution_count


def _show_figure(fig: Figure, caption: str) -> None:
    """Show a figure and its caption below it; nothing outside a notebook."""
    if _cell() is not None:
        import matplotlib.pyplot as plt
        from IPython.display import display

        display(fig)
        plt.close(fig)  # else the cell shows it again at its end
        _show(f"*{markdown.plain(caption)}*")


def _show(text: str) -> None:
    """Show Markdown as an output of the running cell; nothing outside a notebook."""
    from IPython.display import Markdown, display

    if _cell() is not None:
        display(Markdown(text))


def find_results(name: str, profile: str) -> Path:
    """Folder of a notebook's results: what ran last in this clone, else the committed run; the
    profile first, then what it builds on. FileNotFoundError when the notebook has never run.
    """
    for other in profiles.lineage(profile):
        execution = paths.executed_dir(other) / f"{name}.json"
        if execution.is_file():
            folder = paths.root() / json.loads(execution.read_text(encoding="utf-8"))["results"]
            if (folder / "record.json").is_file():
                return folder
        for aside in ("", *ASIDE):
            folder = paths.results_dir(other, name) / aside
            if (folder / "record.json").is_file():
                return folder
    again = f"run `make {name} PROFILE={profiles.lineage(profile)[-1]}` first"
    raise FileNotFoundError(f"no results of notebook {name} in profile {profile!r}: {again}")


def _results_of(name: str, profile: str) -> Path:
    return with_maker(lambda: find_results(name, profile), name, profile)


def load_table(name: str, table: str, profile: str) -> pd.DataFrame:
    """A table of another notebook, which runs first if need be; FileNotFoundError without it."""
    path = _results_of(name, profile) / f"{table}.csv"
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in path.parent.glob("*.csv"))) or "none"
        raise FileNotFoundError(f"notebook {name} recorded no table {table!r}; it has: {known}")
    return pd.read_csv(path)


def load_record(name: str, profile: str) -> dict[str, Any]:
    """The `record.json` of another notebook, which runs first where it never ran."""
    return json.loads((_results_of(name, profile) / "record.json").read_text(encoding="utf-8"))


def load_sources(name: str, profile: str) -> list[Source]:
    """Data sources of an earlier notebook, to be passed on by the notebooks that build on it."""
    return [Source(**entry) for entry in load_record(name, profile)["sources"]]


def _plain(value: Any) -> Any:
    """What JSON can hold of a number, text or container; non-finite floats become text."""
    if hasattr(value, "item") and getattr(value, "size", 1) == 1:
        value = value.item()
    if isinstance(value, float):
        return float(_FLOAT_FORMAT % value) if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)


def _versions() -> dict[str, str]:
    found = {"python": ".".join(platform.python_version_tuple()[:2])}
    for package in _PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package).partition("+")[0]
    return found


def _commit() -> str:
    # without the filter that strips notebooks, which git would start for each: ten seconds a run
    command = "git -c filter.nbstripout.clean= describe --always --dirty".split()
    try:
        said = subprocess.run(command, cwd=paths.root(), capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return said.stdout.strip() or "unknown"


def _json(content: Any) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"

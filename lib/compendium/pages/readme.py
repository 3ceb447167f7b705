"""README and pages of `docs` with numbers: rendered from templates and `results/`, so that no number
is typed by hand. `make readme` writes them, `make lint` says which are not up to date.

`docs/templates/README.md` becomes `README.md`, `docs/templates/docs/answers.md` `docs/answers.md`.
A template (Jinja2) calls these functions::

    {{ value("12_first_scan/ppocr_unargmaxable", ",.0f") }}    an address of runs.recorded, a format
    {{ table("10_braid_counts/model_sizes", "a, b") }}         a notebook's or bench/NAME, its columns
    {{ table("bench/targets", "target", "minutes > 9") }}      and rows of which pandas' query is true
    {{ count("bench/found_unaided", "unargmaxable == 0") }}    its rows of which pandas' query is true
    {{ figure("11_region_geometry/figure_3_slices") }}                  with its alternative text
    {{ verdicts("003") }}                                      by kind, of a paper or "all"
    {{ links() }}                                              to the site, at pyproject.toml's address
"""

import tomllib
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
import yaml

from compendium import findings, markdown, paths
from compendium.pages import gallery, notebook_pages
from compendium.profiles import COMMITTED
from compendium.runs import all_committed, committed, recorded

_SPECIFICATION = "https://codecheck.org.uk/spec/config/2.0/"
_PAPER: dict[str, Any] = {
    "title": "Softmax Geometry: a reproducible compendium",
    "authors": [{"name": "The Softmax Geometry authors"}],
}
TEMPLATES = "docs/templates"


def render(template: str, up: str = "") -> str:
    """A template filled from the committed results; `up` leads from its page to the top of the
    repository (`../`). KeyError when it names what was never recorded, jinja2.TemplateError when
    it is no template.
    """

    def figure(what: str) -> str:
        name, _, key = what.rpartition("/")
        run = committed(name)
        if key not in run.record["figures"]:
            known = ", ".join(run.record["figures"]) or "none"
            raise KeyError(f"a page names the figure {what}; {name} recorded {known}")
        return gallery.picture(run, key, up)

    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    functions = {"value": _value, "table": _table, "count": _count}
    functions |= {"verdicts": _verdicts, "links": _links}
    return environment.from_string(template).render(**functions, figure=figure)


def _value(what: str, form: str = "") -> str:
    return format(recorded(what), form)


def _verdicts(paper: str) -> str:
    found = [f for f in findings.of_committed()[0] if paper in ("all", f.claim.paper)]
    return gallery.table_of_counts(found)


def _read(what: str, **how: Any) -> pd.DataFrame:
    name, _, key = what.rpartition("/")
    bench = paths.root() / "results" / "bench"
    path = (bench if name == "bench" else committed(name).results) / f"{key}.csv"
    if not path.is_file():
        raise KeyError(f"a page names the table {name}/{key}, which was not recorded")
    return pd.read_csv(path, **how)


def _count(what: str, where: str) -> str:
    return str(len(_read(what, thousands=",").query(where)))


def _table(what: str, columns: str = "", where: str = "") -> str:
    frame = _read(what)
    if where:
        frame = frame.loc[_read(what, thousands=",").query(where).index]
    return markdown.table(
        frame[[column.strip() for column in columns.split(",")]] if columns else frame
    )


def _links() -> str:
    at = addresses()
    if not at:
        return ""
    checks = f"{at['source']}/actions/workflows/ci.yml"
    badge = f"[![try it in a browser](https://mybinder.org/badge_logo.svg)]({at['binder']})"
    state = f"[![checks of the main branch]({checks}/badge.svg?branch=main)]({checks})"
    return f"[**The live site**]({at['site']}) · {badge} {state}"


def addresses() -> dict[str, str]:
    """Where the compendium is seen (`site`), read (`source`) and tried (`binder`): made from
    pyproject.toml's `urls.Source`, and empty until that is set.
    """
    path = paths.root() / "pyproject.toml"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    source = tomllib.loads(text).get("project", {}).get("urls", {}).get("Source", "").rstrip("/")
    if not source:
        return {}
    owner, name = source.rsplit("/", 2)[1:]
    return {
        "source": source,
        "site": f"https://{owner}.github.io/{name}/",
        "binder": f"https://mybinder.org/v2/gh/{owner}/{name}/main"
        "?urlpath=lab/tree/notebooks/start.ipynb",
    }


def fresh() -> dict[Path, str | None]:
    """Each rendered file and what it should hold: None for one that should not be there."""
    root, pages = paths.root(), dict[Path, str | None]()
    for template in sorted((root / TEMPLATES).rglob("*.md")):
        page = template.relative_to(root / TEMPLATES)
        up = "../" * (len(page.parts) - 1)
        pages[root / page] = render(template.read_text(encoding="utf-8"), up)
    for made in (gallery, notebook_pages):
        pages |= dict.fromkeys((root / made.FOLDER).glob("*.md"))
        pages |= {root / path: text for path, text in made.pages().items()}
    for profile in COMMITTED:
        found, _ = findings.of_committed((profile,))
        if found:
            pages[paths.results_dir(profile, "verdicts.csv")] = findings.baseline(found)
    return pages


def write() -> None:
    """Write every rendered file, and remove pages that are none any more."""
    for path, text in fresh().items():
        if text is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def stale() -> list[str]:
    """Files that do not show the committed results, as paths in the repository."""
    odd = [
        path
        for path, text in fresh().items()
        if text != (path.read_text(encoding="utf-8") if path.is_file() else None)
    ]
    return sorted(path.relative_to(paths.root()).as_posix() for path in odd)


def manifest() -> str:
    """`codecheck.yml`: every committed figure and table with what it shows, by notebook, in the
    format of CODECHECK (https://codecheck.org.uk). The authors add ORCIDs, whoever checks adds
    `codechecker`, `certificate`, `summary` and `report`: the format forbids placeholders.
    """
    entries = []
    for run in all_committed():
        folder = run.results.relative_to(paths.root()).as_posix()
        told = {run.figure(key): figure["caption"] for key, figure in run.record["figures"].items()}
        told |= {f"{folder}/{key}.csv": text for key, text in run.record["tables"].items()}
        entries += [{"file": file, "comment": text} for file, text in told.items()]
    source = addresses().get("source")
    paper = _PAPER | ({"reference": source} if source else {})
    content = {"version": _SPECIFICATION, "paper": paper, "manifest": entries}
    how: dict[str, Any] = {"sort_keys": False, "allow_unicode": True, "explicit_start": True}
    return yaml.safe_dump(content, width=120, **how)

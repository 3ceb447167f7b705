"""A scan on one page of its own: counts, scripts, the lost classes, a picture, how to check it."""

from __future__ import annotations

import html
import math
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from softgeom.layer import SoftmaxLayer
from softgeom.verdict_table import at_most, escape_token, up

COLOURS = {  # of each verdict, on white and on a dark page
    "argmaxable": ("#0b5394", "#7fb2e5"),
    "tied": ("#7a5c00", "#e3b341"),
    "unargmaxable": ("#b02318", "#ff8a80"),
    "undecided": ("#5f5f5f", "#a8b0b8"),
}
_WORST = 60  # classes listed by name
_MANY = 2_000  # tokens in the roll of those that can never win


def _theme(dark: bool) -> str:
    named = {"ink": ("#1d1d1f", "#e6edf3"), "paper": ("#ffffff", "#14181d")}
    named |= {"code": ("#f2f2f4", "#252b33"), **COLOURS}
    return "".join(f"--{name}:{pair[dark]};" for name, pair in named.items())


_STYLE = f"""
.softgeom-card{{{_theme(False)}color-scheme:light;font:15px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:60rem;margin:1.5rem auto;padding:0 1rem}}
@media (prefers-color-scheme:dark){{.softgeom-card{{{_theme(True)}color-scheme:dark}}}}
.softgeom-card h1{{font-size:1.4rem;margin:.2rem 0;overflow-wrap:anywhere}}.softgeom-card h2{{font-size:1.05rem;margin:1.4rem 0 .3rem}}
.softgeom-card p{{overflow-wrap:anywhere}}.softgeom-card table{{border-collapse:collapse}}.softgeom-card td,.softgeom-card th{{padding:.15rem .8rem .15rem 0;text-align:right}}
.softgeom-card td:first-child,.softgeom-card th:first-child{{text-align:left;overflow-wrap:anywhere}}
.softgeom-card .roll{{font-size:1.15rem;overflow-wrap:anywhere;line-height:1.7}}.softgeom-card code{{background:var(--code);padding:.1rem .3rem}}
"""
# around the card
_PAGE = "html{background:#fff}@media (prefers-color-scheme:dark){html{background:#14181d}}"


def sentences(notes: Iterable[str | None]) -> list[str]:
    """Notes as sentences."""
    return [f"{note[:1].upper()}{note[1:]}." for note in notes if note]


def script_of(token: str) -> str:
    """The script of a token's first letter, by its Unicode name; `other` without a letter."""
    letter = next((c for c in token if c.isalpha()), None)
    name = unicodedata.name(letter, "OTHER").split()[0] if letter else "OTHER"
    return {"CJK": "Han", "IDEOGRAPHIC": "Han"}.get(name, name.capitalize())


def by_script(table: pd.DataFrame) -> pd.DataFrame:
    """Classes and unargmaxable classes of each script, the most frequent scripts first."""
    scripts = [script_of(token) for token in table["token"]]
    verdicts = zip(scripts, table["verdict"], strict=True)
    lost = Counter(script for script, verdict in verdicts if verdict == "unargmaxable")
    rows = [(script, count, lost[script]) for script, count in Counter(scripts).most_common()]
    return pd.DataFrame(rows, columns=["script", "classes", "unargmaxable"])


def card(
    table: pd.DataFrame,
    counts: Mapping[str, int],
    title: str,
    facts: Sequence[str] = (),
    *,
    ceiling: Callable[[int], float] | None,
    whole: bool = True,
) -> str:
    """HTML of a scan: `table` and `counts` are its own, `title` is the model's name, `facts` are
    sentences under it, `ceiling` is ``Scan.ceiling``, asked of the classes that are listed by name,
    or None where no probability is bounded.
    `whole`: a document of its own, rather than a piece for a notebook.
    """
    lost = table[table["verdict"] == "unargmaxable"].sort_values("margin")
    parts = [
        f"<h1>{_text(title)}</h1>",
        f"<p><b>{_headline(counts)}</b></p>",
        "".join(f"<p>{_text(fact)}</p>" for fact in facts),
        _counts(counts),
        _picture(table),
    ]
    if len(lost):
        parts += [_conditions(lost), _scripts(table)]
        worst = lost.head(_WORST)
        listed = zip(worst["class"], worst["token"], worst["margin"], strict=True)
        rows = _rows(
            (_name(token), t, at_most(margin), *((f"{up(ceiling(t), 2)}%",) if ceiling else ()))
            for t, token, margin in listed
        )
        last = "<th>probability at most</th>" if ceiling else ""
        parts.append(
            "<h2>Deepest inside</h2><table><tr><th>token</th><th>class</th><th>margin at "
            f"most</th>{last}</tr>{rows}</table>"
        )
        roll = " ".join(_name(token) for token in lost["token"][:_MANY])
        more = f" and {len(lost) - _MANY:,} more" if len(lost) > _MANY else ""
        parts.append(f'<h2>Never an output</h2><p class="roll">{roll}{more}</p>')
    body = _body(parts)
    return _document(title, body) if whole else body


def label_card(
    layer: SoftmaxLayer,
    counts: Mapping[str, int],
    never: Sequence[int],
    title: str,
    facts: Sequence[str],
) -> str:
    """HTML of a model that decides each label by itself: how many labels can be on, and which
    never are.
    """
    rows = _rows((_text(name), f"{number:,}") for name, number in counts.items())
    parts = [
        f"<h1>{_text(title)}</h1>",
        f"<p><b>{len(never):,} of {sum(counts.values()):,} labels are never on.</b></p>",
        "".join(f"<p>{_text(fact)}</p>" for fact in facts),
        f"<table>{rows}</table>",
    ]
    if never:
        roll = " ".join(_name(layer.token(t)) for t in never[:_MANY])
        more = f" and {len(never) - _MANY:,} more" if len(never) > _MANY else ""
        parts.append(f'<h2>Never on</h2><p class="roll">{roll}{more}</p>')
    return _document(title, _body(parts))


def piece(title: str, facts: Sequence[str], table: pd.DataFrame | None = None) -> str:
    """HTML of another result for a notebook: a title, sentences, the first rows of its table."""
    parts = [f"<h1>{_text(title)}</h1>", "".join(f"<p>{_text(fact)}</p>" for fact in facts)]
    if table is not None:
        first = table.head(_WORST).itertuples(index=False)
        shown = ((_name(c) if isinstance(c, str) else _number(c) for c in row) for row in first)
        head = "".join(f"<th>{_text(column)}</th>" for column in table.columns)
        more = f"<p>{len(table) - _WORST:,} more.</p>" if len(table) > _WORST else ""
        parts += [f"<table><tr>{head}</tr>{_rows(map(list, shown))}</table>", more]
    return _body(parts)


def _number(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else _text(value)


def _body(parts: Sequence[str]) -> str:
    return f'<style>{_STYLE}</style><div class="softgeom-card">{"".join(parts)}</div>'


def _document(title: str, body: str) -> str:
    head = (
        '<meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width"><title>{_text(title)}</title><style>{_PAGE}</style>'
    )
    return f"<!doctype html><html lang=en><head>{head}</head><body>{body}</body></html>\n"


def _rows(cells: Iterable[Sequence[object]]) -> str:
    return "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in cells)


def _headline(counts: Mapping[str, int]) -> str:
    total = sum(counts.values())
    if lost := counts["unargmaxable"]:
        return f"{lost:,} of {total:,} outputs can never be the answer, each proven."
    if counts["undecided"]:
        return f"No output is proven lost; {counts['undecided']:,} of {total:,} are undecided."
    tied = f" but for {counts['tied']:,} that tie with a twin" if counts["tied"] else ""
    return f"Every one of the {total:,} outputs can be the answer{tied}, each proven."


def _counts(counts: Mapping[str, int]) -> str:
    rows = "".join(
        f'<tr><td style="color:var(--{name})">{name}</td><td>{number:,}</td></tr>'
        for name, number in counts.items()
    )
    return f"<table>{rows}</table>"


def _conditions(lost: pd.DataFrame) -> str:
    """Under which condition on the features how many are lost, where the scan asked."""
    if "holds" not in lost:
        return ""
    counted = (f"{n:,} {_text(where)}" for where, n in Counter(lost["holds"]).most_common())
    return f"<p>Proven: {'; '.join(counted)}.</p>"


def _scripts(table: pd.DataFrame) -> str:
    counted = by_script(table)
    shown = counted[counted["unargmaxable"] > 0].head(20).itertuples(index=False)
    rows = _rows((_text(s), f"{n:,}", f"{lost:,}", f"{lost / n:.0%}") for s, n, lost in shown)
    return (
        "<h2>By script</h2><table><tr><th>script</th><th>classes</th><th>never</th>"
        f"<th>share</th></tr>{rows}</table>"
    )


def _picture(table: pd.DataFrame) -> str:
    """Certified margins on a logarithmic axis: what can never win to the left."""
    margins = table["margin"].to_numpy(float)
    powers = {}
    for name, sign in (("unargmaxable", -1), ("argmaxable", 1)):
        values = sign * margins[table["verdict"] == name]
        powers[name] = np.log10(np.maximum(values[(values > 0) & np.isfinite(values)], 1e-9))
    drawn = [values for values in powers.values() if len(values)]
    if not drawn:
        return ""
    low = math.floor(min(v.min() for v in drawn))
    high = math.ceil(max(v.max() for v in drawn)) + 1e-9
    bins = np.linspace(low, high, 41)
    tallest = max(np.histogram(values, bins)[0].max() for values in drawn)
    width, height, bars = 800, 190, []
    for name, values in powers.items():
        for n, count in enumerate(np.histogram(values, bins)[0]):
            tall = 150 * math.log1p(count) / math.log1p(tallest)
            place = 410 + n * 9.4 if name == "argmaxable" else 390 - (n + 1) * 9.4
            if count:
                bars.append(
                    f'<rect x="{place:.1f}" y="{160 - tall:.1f}" width="8.4" '
                    f'height="{tall:.1f}" style="fill:var(--{name})"/>'
                )
    labels = (
        '<text x="10" y="182" font-size="14" style="fill:var(--unargmaxable)">trails '
        f"always, by at least 1e{low:+.0f} ... 1e{high:+.0f} "
        '(outwards)</text><text x="790" y="182" font-size="14" text-anchor="end" '
        'style="fill:var(--argmaxable)">leads somewhere, by as much</text>'
    )
    title = "<title>Histogram of certified margins, counts on a logarithmic scale</title>"
    return (
        f'<svg viewBox="0 0 {width} {height}" style="max-width:100%" '
        f'role="img">{title}{"".join(bars)}{labels}</svg>'
    )


def _name(token: str) -> str:
    """A token on one line; one of spaces alone, or of nothing, in quotes."""
    return _text(escape_token(token) if token.strip() else repr(token))


def _text(text: object) -> str:
    return html.escape(str(text))

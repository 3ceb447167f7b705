"""Drawings of the story, as SVG: small, in the colours of the page, whole without a script."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from softgeom.margins import scalar

# Places of the four signs, in units of the drawing: three corners, and the one that moves.
_CORNERS = {"D": (-130.0, 92.0), "A": (-8.0, -132.0), "G": (128.0, 80.0)}
_PLACES = {"alive": (112.0, -96.0), "dead": (2.0, 12.0), "free": (2.0, 12.0)}
_RING, _LOOK = 214.0, -0.72  # radius of the ring, and the direction that is drawn at first
_WORDS = {
    "alive": "outside of the triangle of D, A and G, with a part of the ring of directions.",
    "dead": "inside the triangle of D, A and G; the ring belongs to these three alone.",
    "free": "inside the triangle of D, A and G, to be dragged out.",
}


def _figure(box: str, words: str, content: str, name: str = "", role: str = "img") -> str:
    kind = f' class="{name}"' if name else ""
    return (
        f'<figure{kind}><svg viewBox="{box}" role="{role}" aria-label="{html.escape(words)}">'
        f"{content}</svg></figure>"
    )


def _text(x: float, y: float, words: str, kind: str = "", size: float = 16) -> str:
    chosen = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.5g}" y="{y:.5g}" font-size="{size:.4g}"{chosen}>{words}</text>'


def _below(y: float, words: str) -> str:
    """What a drawing is of, in its middle."""
    return _text(260, y, words, "soft", 17)


def _disc(x: float, y: float, r: float, kind: str) -> str:
    return f'<circle cx="{x:.5g}" cy="{y:.5g}" r="{r:.4g}" class="{kind}"/>'


def _bar(x: float, y: float, width: float, height: float, kind: str) -> str:
    size = f'width="{width:.5g}" height="{height:.4g}"'
    return f'<rect x="{x:.5g}" y="{y:.5g}" {size} class="{kind}"/>'


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.4g}" y1="{y1:.4g}" x2="{x2:.4g}" y2="{y2:.4g}"/>'


def sign(word: str, letter: str, language: str, meaning: str, reading: str) -> str:
    """A road sign, and what the machine says."""
    shown = word.replace(letter, f'<tspan class="mark">{letter}</tspan>')
    content = (
        '<rect x="8" y="8" width="350" height="172" rx="16" class="plate"/>'
        '<rect x="17" y="17" width="332" height="154" rx="10" class="rim"/>'
        + _text(183, 128, shown, "road", 96)
        + _text(183, 208, f"{language}: {meaning}", "soft", 17)
        + '<path d="M384 94h60m-14 -11l14 11l-14 11" class="arrow"/>'
        + _text(560, 62, "the machine reads", "soft", 17)
        + _text(560, 128, html.escape(normalize("NFKC", reading)), "said", 62)
        + _text(560, 168, f"{letter} is on its list, and lost", "soft", 17)
    )
    words = f"A road sign: {word}, {language} for {meaning}. The machine reads {reading}."
    return _figure("0 0 700 220", words, content, "hero")


def layer(letter: str, features: int) -> str:
    """The one line that everything is about."""
    score = '<tspan class="mark">w</tspan> · x + <tspan class="mark">b</tspan>'
    content = (
        _text(260, 120, f"how well {letter} fits", "soft", 19)
        + _text(260, 190, score, "big", 84)
        + _text(108, 262, f"{features} weights", "mark", 18)
        + _text(252, 306, f"{features} numbers of the picture", "soft", 18)
        + _text(412, 262, "one bias", "mark", 18)
        + '<path d="M128 208L112 240M252 208V284M384 208L406 240" class="hair"/>'
    )
    words = f"The score of a sign: {features} weights times {features} numbers, and a bias."
    return _figure("0 60 520 300", words, content)


def plane(letter: str, state: str) -> str:
    """Signs as points, the direction of a picture, and the ring of who wins in which direction."""
    points = {**_CORNERS, letter: _PLACES[state]}
    at = np.array(list(points.values()))
    angles = np.arange(720) * np.pi / 360
    best = np.argmax(at @ np.stack([np.cos(angles), np.sin(angles)]), axis=0)
    hull = dict.fromkeys(best.tolist())
    arcs = "".join(
        f'<path data-arc="{k}" class="arc k{k}" d="{_arc(best == k)}"/>' for k in range(len(at))
    )
    look = np.array([np.cos(_LOOK), np.sin(_LOOK)])
    winner = int(np.argmax(at @ look))
    along = np.array([-look[1], look[0]]) * 150
    corners = " ".join(f"{x:g},{y:g}" for x, y in at[list(hull)])
    lines = (
        f'<polygon class="hull" points="{corners}"/>'
        + _line("front", *(at[winner] - along), *(at[winner] + along))
        + _line("look", 0, 0, *(_RING * look))
        + _disc(_RING * look[0], _RING * look[1], 10, "eye")
    )
    dots = "".join(
        f'<g data-k="{k}" class="dot k{k}{"" if k in hull else " gone"}" '
        f'transform="translate({x:g} {y:g})"><circle r="24"/>{_text(0, 9, name, "", 26)}</g>'
        for k, (name, (x, y)) in enumerate(points.items())
    )
    role, words = "group" if state == "free" else "img", f"{letter} {_WORDS[state]}"
    return _figure("-240 -240 480 480", words, arcs + lines + dots, f"plane {state}", role=role)


def _arc(won: NDArray[np.bool_]) -> str:
    """The part of the ring whose half degrees are won; one stretch, as the winners' cones are."""
    if not won.any():
        return ""
    first = int(np.flatnonzero(won & ~np.roll(won, 1))[0])
    ends = (np.array([first, first + won.sum()]) - 0.5) * np.pi / 360
    (x, y), (u, v) = (_RING * np.array([np.cos(a), np.sin(a)]) for a in ends)
    return f"M{x:.1f} {y:.1f}A{_RING:g} {_RING:g} 0 {int(won.sum() > 360)} 1 {u:.1f} {v:.1f}"


def proof(letter: str, shares: Sequence[tuple[str, int]], captors: int) -> str:
    """The heaviest captors as discs of their share, and all of the weight as a bar."""
    content = _text(60, 92, letter, "mark big", 84)
    content += _text(300, 58, "is never above the mean of these", "soft", 18)
    content += _text(300, 84, "at any x with entries up to 100", "soft", 18)
    for n, (name, share) in enumerate(shares):
        x, y, r = 82 + 118 * (n % 4), 172 + 118 * (n // 4), 10 * share**0.5
        content += _disc(x, y, max(r, 22), "captor") + _text(x, y + 9, html.escape(name), "", 26)
        content += _text(x, y + max(r, 22) + 20, f"{share}%", "soft", 15)
    left = 40.0
    for _, share in shares:
        content += _bar(left, 388, 4.4 * share - 1.5, 22, "part")
        left += 4.4 * share
    content += _bar(left, 388, 480 - left, 22, "rest")
    rest = 100 - sum(share for _, share in shares)
    content += _below(438, f"and {captors - len(shares)} others with {rest}%")
    named = ", ".join(f"{name} {share}%" for name, share in shares)
    words = f"{letter} beside the heaviest of its {captors} captors: {named}."
    return _figure("0 -14 520 464", words, content)


def ceilings(bounds: Mapping[str, float], told: str) -> str:
    """Letters stacked over the probability that each never exceeds."""
    left, right, low = 40.0, 490.0, -4.0
    content, stacked = "", dict[int, int]()
    for letter, bound in sorted(bounds.items(), key=lambda pair: pair[0] != told):
        place = round((np.log10(bound) - low) / -low * (right - left) / 26)
        level = stacked[place] = stacked.get(place, 0) + 1
        kind = "mark strong" if letter == told else ""
        content += _text(left + 26 * place, 402 - 24.5 * level, letter, kind, 18)
    content += f'<path d="M{left - 15} 384H{right + 15}" class="hair"/>'
    for power, name in zip(range(-4, 1), ("0.01%", "0.1%", "1%", "10%", "100%"), strict=True):
        content += _text(left + (right - left) * (power + 4) / 4, 408, name, "soft", 15)
    half = left + (right - left) * (np.log10(0.5) + 4) / 4
    content += f'<path d="M{half:.4g} 90V384" class="dash"/>'
    content += _text(half, 80, "one half", "soft", 15)
    content += _below(440, "a probability that it never exceeds, for features up to 100")
    words = f"{len(bounds)} letters over their ceilings; most, {told} among them, near 0.02%."
    return _figure("0 -14 520 464", words, content)


def copies(lost: float, free: float) -> str:
    """How far the typical row is from the nearest other one."""
    content = '<path d="M30 240H500" class="hair"/>'
    for power in range(-8, 1, 2):
        number = f"10<tspan dy='-7' font-size='11'>{power}</tspan>" if power else "1"
        content += _text(46 + 53 * (power + 8), 266, number, "soft", 15)
    for value, kind, name in ((lost, "lost", "a lost row"), (free, "lives", "a row that can win")):
        x = 46 + 53 * (np.log10(value) + 8)
        content += f'<path d="M{x:.4g} 240V150" class="stem {kind}"/>' + _disc(x, 140, 13, kind)
        content += _text(min(max(x, 74), 424), 112, name, kind, 18)
    content += _below(306, "distance to the nearest other row (median)")
    words = f"The typical lost row has another at distance {lost:.1e}, "
    words += f"one that can win at {free:.1f}."
    return _figure("0 60 520 270", words, content)


def cut(outputs: int, kept: int) -> str:
    """The list before and after."""
    share = kept / outputs
    content = _bar(30, 110, 460, 54, "rest") + _text(260, 144, f"{outputs:,} signs listed", "", 19)
    content += _bar(30, 200, 460 * share, 54, "part")
    content += _text(30 + 230 * share, 234, f"{kept:,} kept", "inside", 19)
    content += _bar(30 + 460 * share, 200, 460 * (1 - share), 54, "gap")
    return _figure("0 80 520 200", f"Of {outputs:,} signs {kept:,} are kept.", content)


def fold(coupling: float, past: NDArray[np.float64]) -> str:
    """The map x - mu(x) on a line, where it goes back on itself."""
    places = np.linspace(-2.2, 2.2, 111)
    values = scalar.residual(places, past, coupling)
    drawn = "L".join(
        f"{130 + 55 * x:.1f} {75 - 45 * y:.1f}" for x, y in zip(places, values, strict=True)
    )
    content = '<path d="M0 75H260M130 0V150" class="hair"/>' + f'<path d="M{drawn}" class="curve"/>'
    return _figure("0 0 260 150", "A curve that rises, falls back and rises again.", content)


def bars(names: Sequence[str], values: Sequence[float], form: str) -> str:
    """Two lengths, one under the other."""
    content = ""
    for n, (name, value) in enumerate(zip(names, values, strict=True)):
        y = 44 + 66 * n
        content += _text(10, y - 10, name, "soft start", 14)
        content += _bar(10, y, max(170 * value / max(values), 1.5), 26, "part")
        content += _text(170 * value / max(values) + 18, y + 19, form.format(value), "start", 15)
    told = "; ".join(f"{n}: {form.format(v)}" for n, v in zip(names, values, strict=True))
    return _figure("0 0 260 150", told, content)

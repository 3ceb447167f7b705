// The fold explorer (003, Section 3.3): attention on a line. Past tokens are numbers; a token x gives x_j the weight softmax(c x x_j), subtracts
// their mean, and keeps the residual e(x) = x - mean(x), whose slope is 1 - c Var(x). Where the slope is negative the line folds.
//
// The model holds past (numbers), coupling c, and level (the residual that is asked for). While it is hidden (a last property) the coupling stops
// at a half, nothing can be dragged, and no number is shown: from which c on the line folds waits for a guess.

import { guide } from "./guide.js";
import {
  Handle,
  HIDDEN,
  Plane,
  assemble,
  beckon,
  colour,
  format,
  matchHandles,
  moreAndFewer,
  presetMenu,
  say,
  scaffold,
  slider,
  snap,
  subscript,
  svg,
  watch,
  writer,
} from "./stage.js";

const MOST_TOKENS = 8;
const HALF = 3; // of the window
const POINTS = 600; // of the curve
const HIDDEN_COUPLING = 0.5;
const MISSIONS = [
  ["Find the coupling at which the line is just about to fold: smallest slope 0, within 0.03.", ({ least }) => Math.abs(least) <= 0.03],
  ["Find a residual that three tokens share.", ({ roots }) => roots.length === 3],
  ["Find one that five share. It takes a past of three.", ({ roots }) => roots.length >= 5],
];

/** Mean and variance of the past under the weights that x gives it, and the slope 1 - c Var. */
export function moments(x, past, c) {
  const top = Math.max(...past.map((p) => c * x * p));
  let [total, first, second] = [0, 0, 0];
  for (const p of past) {
    const weight = Math.exp(c * x * p - top);
    total += weight;
    first += weight * p;
  }
  const mean = first / total;
  for (const p of past) second += Math.exp(c * x * p - top) * (p - mean) ** 2;
  const variance = second / total;
  return { mean, variance, slope: 1 - c * variance };
}

/** Every x whose residual is e, in increasing order: sign changes on a grid over e + the past's range, halved until they are exact. */
export function solutions(e, past, c) {
  const gap = (x) => x - moments(x, past, c).mean - e;
  const [low, high] = [e + Math.min(...past) - 1.003, e + Math.max(...past) + 1.007];
  const steps = 4000;
  const at = (k) => low + ((high - low) * k) / steps;
  const found = [];
  for (let k = 0, u = gap(at(0)); k < steps; k++) {
    const v = gap(at(k + 1));
    if (u < 0 !== v < 0) found.push(halve(gap, at(k), at(k + 1), u < 0));
    u = v;
  }
  return found;
}

function halve(f, a, b, negativeAtA) {
  for (let k = 0; k < 50; k++) {
    const middle = (a + b) / 2;
    if (f(middle) < 0 === negativeAtA) a = middle;
    else b = middle;
  }
  return (a + b) / 2;
}

/** Tokens all along the window, each with its residual and slope: both curves are drawn from them. */
export function sampleLine(past, c) {
  return Array.from({ length: POINTS + 1 }, (_, k) => {
    const x = HALF * ((2 * k) / POINTS - 1);
    const { mean, slope } = moments(x, past, c);
    return { x, residual: x - mean, slope };
  });
}

/** The smallest slope among them, and where it is. */
export function steepestFold(line) {
  let [least, where] = [Infinity, 0];
  for (const { x, slope } of line) if (slope < least) [least, where] = [slope, x];
  return { least, where };
}

function problemWithLine(past, c, level) {
  if (!Array.isArray(past) || past.length < 1 || past.length > MOST_TOKENS) return `past needs 1 to ${MOST_TOKENS} numbers.`;
  return [...past, c, level].every(Number.isFinite) ? "" : "past, coupling and level must be finite numbers.";
}

export function render({ model, el }) {
  const page = layOut(el);
  const put = writer(model);
  const handles = [];
  let asked = null;
  const presets = presetMenu(page, model, (changes) => (help.rest(), put(changes)));
  const resize = (change) => {
    const past = change(model.get("past"));
    if (!model.get("hidden") && past.length > 0 && past.length <= MOST_TOKENS) put({ past });
  };
  moreAndFewer(
    page.buttons,
    "token",
    [() => resize((past) => [...past, snap(2 * Math.cos(2.4 * past.length))]), () => resize((past) => past.slice(0, -1))],
    ["Add a token to the past", "Remove the latest token of the past"],
  );
  const coupling = slider(page.sliders, {
    label: "coupling c",
    min: -3,
    max: 5,
    step: 1 / 16,
    input: (value) => put({ coupling: model.get("hidden") ? Math.min(value, HIDDEN_COUPLING) : value }),
  });
  const help = guide(
    page,
    [
      "The curve is what is left of x when the mean of its past is subtracted. Drag the past tokens, or the level e at the left.",
      "Its slope. Where it is below zero, the curve goes back: the line is folded.",
      "The coupling sharpens attention. Turn it up.",
      "How many tokens have the residual at the dashed level.",
    ],
    MISSIONS,
  );
  function draw() {
    const [past, given, level] = ["past", "coupling", "level"].map((name) => model.get(name));
    const problem = problemWithLine(past, given, level);
    say(page.message, problem);
    if (problem) return; // the last good picture stays
    const hidden = Boolean(model.get("hidden"));
    const c = hidden ? Math.min(given, HIDDEN_COUPLING) : given;
    const roots = solutions(level, past, c);
    matchHandles(handles, past.length, (i) => {
      const move = ([x]) => model.get("hidden") || put({ past: model.get("past").map((p, k) => (k === i ? x : p)) });
      return new Handle(page.line, { name: `token-${i}`, move });
    });
    past.forEach((p, i) =>
      handles[i].place([p, 0], {
        fill: colour(i),
        caption: subscript("x", i + 1),
        away: [0, -1],
        label: `past token ${subscript("x", i + 1)} at ${format(p)}`,
      }),
    );
    const move = ([, e]) => model.get("hidden") || put({ level: e });
    asked ??= new Handle(page.line, { name: "level", shape: "diamond", move }); // after the tokens: Tab meets them first
    asked.place([-HALF + HALF / 20, level], { fill: "var(--sg-ink)", caption: "e", away: [0, 1], label: `residual asked for, ${format(level)}` });
    const line = sampleLine(past, c);
    const fold = steepestFold(line);
    drawCurve(page.line, line, hidden);
    drawLevel(page.line, level, hidden ? [] : roots);
    drawSlope(page.slope, line, hidden);
    presets.hide(hidden);
    if (hidden) [page.live, page.detail].forEach((line, k) => say(line, k ? "" : HIDDEN));
    else tell(page, roots, fold, c, level);
    help.check(hidden ? null : { roots, ...fold });
    coupling.control.max = hidden ? HIDDEN_COUPLING : 5;
    coupling.set(c, format(c));
  }

  const stop = watch(model, ["past", "coupling", "level", "hidden"], draw);
  draw();
  beckon(model, page.line, [model.get("past").at(-1), 0], [1.5, 0]);
  return stop;
}

function layOut(el) {
  const page = scaffold(el, "Fold explorer", [
    "The residual e(x) = x − mean: drag the past, and the level e",
    "Its slope 1 − c Var(x): below zero the line folds",
  ]);
  const [left, right] = page.figures;
  const line = new Plane(left, {
    half: HALF,
    axes: ["x", "e"],
    label: "Residual against token. Tab selects a past token or the level, arrow keys move it, Shift makes the steps finer.",
  });
  const slope = new Plane(right, { half: HALF, axes: ["x", "slope"], label: "Slope of the residual against the token" });
  assemble(page);
  return { ...page, line, slope };
}

/** A curve as two paths: the pieces on which the line keeps its direction, and those on which it is folded. */
function splitCurve(plane, line, height, unfolded) {
  const drawn = { kept: "", folded: "" };
  for (let k = 0, pen = ""; k < POINTS; k++) {
    const [p, q] = [line[k], line[k + 1]];
    const part = unfolded || p.slope + q.slope >= 0 ? "kept" : "folded";
    if (part !== pen) drawn[part] += `M${plane.place([p.x, p[height]])}`;
    drawn[part] += `L${plane.place([q.x, q[height]])}`;
    pen = part;
  }
  return bothParts(drawn);
}

const bothParts = ({ kept, folded }) => [
  ...(kept ? [svg("path", { d: kept, class: "sg-rise" })] : []),
  ...(folded ? [svg("path", { d: folded, class: "sg-crease" })] : []),
];

const drawCurve = (plane, line, hidden) => plane.draw("curve", splitCurve(plane, line, "residual", hidden));

function drawLevel(plane, level, roots) {
  plane.draw("level", [
    plane.line([-HALF, level], [HALF, level], { class: "sg-front" }),
    ...roots.map((x) => plane.circle([x, level], 6, { class: "sg-mark sg-residual" })),
  ]);
}

const drawSlope = (plane, line, hidden) => plane.draw("slope", hidden ? [] : splitCurve(plane, line, "slope"));

function tell(page, roots, { least, where }, c, level) {
  say(
    page.live,
    roots.length > 1
      ? `${roots.length} tokens have this residual: it does not tell which was meant.`
      : "One token has this residual.",
  );
  const meaning =
    least < 0
      ? "the line is folded there, and residuals of the fold belong to several tokens"
      : c < 0
        ? "negative coupling stretches the line and never folds it"
        : "the line is only stretched; at 0 it begins to fold";
  const places = roots.map((x) => format(x)).join(", ");
  const slope = c > 0 ? `Smallest slope ${format(least)}, at x = ${format(where)}` : `The slope is ${c < 0 ? "above " : ""}1 everywhere`; // 1 − c Var
  say(page.detail, `Residual ${format(level)} at x = ${places}. ${slope}: ${meaning}.`);
}

export default { render };

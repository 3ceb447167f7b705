// The attention explorer (003, Sections 3 and 4): the last token x is dragged among its past. Attention weights, the covariance S of the
// attended tokens, and the block J = I - S M of the change of variables x -> e = x - mean, singular on the curve det J = 0.
//
// The model holds X (T pairs, the last one being x), coupling and turn (degrees): the logits are x_j . M x with M = coupling * rotation.
// While it is hidden (a fourth property), determinants and all that is drawn from them wait for a guess.

import { contour, countPreimages, regionBelow, sampleField } from "./field.js";
import { guide } from "./guide.js";
import {
  Handle,
  HIDDEN,
  Plane,
  assemble,
  beckon,
  colour,
  format,
  html,
  matchHandles,
  moreAndFewer,
  nextPlace,
  presetMenu,
  problemWithPoints,
  say,
  scaffold,
  slider,
  subscript,
  svg,
  watch,
  writer,
} from "./stage.js";

const MOST_TOKENS = 12;
const LEVELS = [0.75, 0.5, 0.25, 0];
const NEAR = 0.02; // |det J| up to this counts as on the fold
const MISSIONS = [
  ["Drag x onto the fold.", ({ value }) => Math.abs(value) < NEAR],
  ["Find an x whose residual belongs to three places.", ({ preimages }) => preimages >= 3],
  ["With three past tokens or more, make folding impossible by the coupling alone.", ({ fold, past, c }) => past.length >= 3 && c !== 0 && !fold.length],
];
const SHEET = 5; // the grid reaches beyond the window of x, as far as its image shows
const [FINE, COARSE] = [1, 0.55]; // cells and points along a line, of a figure at rest and of one that is being dragged
const MOVING = 160; // milliseconds without a change after which a figure is at rest

export function couplingMatrix(coupling, turn) {
  const angle = (turn * Math.PI) / 180;
  const [c, s] = [coupling * Math.cos(angle), coupling * Math.sin(angle)];
  return [[c, -s], [s, c]];
}

/** Weights a (n), mean, covariance S and det(I - S M) of a token at x with the given past. */
export const attend = (x, past, M) => evaluator(past, M).attend(x);

/** What a token meets in one past, as functions of x that share their arrays: a drag evaluates some ten thousand determinants and residuals. */
export function evaluator(past, M) {
  const count = past.length;
  const [u, v, weight] = [0, 1, 2].map(() => new Float64Array(count));
  past.forEach((p, j) => ([u[j], v[j]] = p));
  const [[m00, m01], [m10, m11]] = M;
  let [mean1, mean2, s11, s12, s22] = [0, 0, 0, 0, 0];
  const weigh = ([x, y]) => {
    const q1 = m00 * x + m01 * y;
    const q2 = m10 * x + m11 * y;
    let top = -Infinity;
    for (let j = 0; j < count; j++) if ((weight[j] = u[j] * q1 + v[j] * q2) > top) top = weight[j];
    let total = 0;
    for (let j = 0; j < count; j++) total += weight[j] = Math.exp(weight[j] - top);
    mean1 = mean2 = 0;
    for (let j = 0; j < count; j++) {
      const w = (weight[j] /= total);
      mean1 += w * u[j];
      mean2 += w * v[j];
    }
  };
  const determinant = (x) => {
    weigh(x);
    s11 = s12 = s22 = 0;
    for (let j = 0; j < count; j++) {
      const a = u[j] - mean1;
      const b = v[j] - mean2;
      s11 += weight[j] * a * a;
      s12 += weight[j] * a * b;
      s22 += weight[j] * b * b;
    }
    return (1 - s11 * m00 - s12 * m10) * (1 - s12 * m01 - s22 * m11) - (s11 * m01 + s12 * m11) * (s12 * m00 + s22 * m10);
  };
  return {
    determinant,
    attend: (x) => ({ determinant: determinant(x), weights: [...weight], mean: [mean1, mean2], covariance: [[s11, s12], [s12, s22]] }),
    residual(x) {
      weigh(x);
      return [x[0] - mean1, x[1] - mean2];
    },
  };
}

/** Determinants of all positions (1 for the first, which has no past) and the support token: the position with the smallest. */
export function positions(X, M) {
  const determinants = X.map((x, i) => (i ? attend(x, X.slice(0, i), M).determinant : 1));
  const support = determinants.indexOf(Math.min(...determinants));
  return { determinants, support };
}

export function render({ model, el }) {
  const page = layOut(el);
  const put = writer(model);
  const state = { handles: [], key: "", changed: -Infinity, later: null, detail: FINE };
  const presets = presetMenu(page, model, (changes) => (help.rest(), put(changes)));
  const resize = (change) => {
    const X = change(model.get("X").slice(0, -1));
    if (X.length > 0 && X.length < MOST_TOKENS) put({ X: [...X, model.get("X").at(-1)] });
  };
  moreAndFewer(
    page.buttons,
    "token",
    [() => resize((past) => [...past, nextPlace(past.length + 1, 1.5)]), () => resize((past) => past.slice(0, -1))],
    ["Add a token to the past", "Remove the latest token of the past"],
  );
  const coupling = slider(page.sliders, {
    label: "coupling c",
    min: -3,
    max: 3,
    step: 1 / 16,
    input: (value) => put({ coupling: value }),
  });
  const turn = slider(page.sliders, { label: "turn of M", min: -180, max: 180, step: 5, input: (value) => put({ turn: value }) });

  const help = guide(
    page,
    [
      "The dark point x attends to its past; thicker lines are larger weights. Drag any of them.",
      "The plane of x after the mean is subtracted. Where x passes the red curve, this sheet is folded over.",
      "Whether attention is torn at x: there the change of variables is singular.",
      "Coupling and turn of M. A negative coupling never folds.",
    ],
    MISSIONS,
  );

  function draw() {
    const [X, c, angle] = ["X", "coupling", "turn"].map((name) => model.get(name));
    const problem =
      problemWithPoints("X", X, 2, MOST_TOKENS) || (Number.isFinite(c) && Number.isFinite(angle) ? "" : "coupling and turn must be finite numbers.");
    say(page.message, problem);
    if (problem) return; // the last good picture stays
    const M = couplingMatrix(c, angle);
    const past = X.slice(0, -1);
    const hidden = Boolean(model.get("hidden"));
    const key = JSON.stringify([past, c, angle, hidden]);
    if (key !== state.key) {
      state.key = key; // the field depends on the past only: dragging x leaves it as it is
      const moving = performance.now() - state.changed < MOVING;
      state.detail = moving ? COARSE : FINE;
      state.fold = drawField(page, past, M, hidden, state.detail);
      state.changed = performance.now(); // from the end: a machine that takes long to draw has the more need of the coarse figure
      clearTimeout(state.later);
      if (moving) state.later = setTimeout(sharpen, MOVING);
    }
    const seen = attend(X.at(-1), past, M);
    const all = positions(X, M);
    matchHandles(state.handles, X.length, (i) => {
      const move = (at) => put({ X: model.get("X").map((x, k) => (k === i ? at : x)) });
      return new Handle(page.tokens, { name: `token-${i}`, move });
    });
    drawTokens(page, state, X, seen, all, hidden);
    const e = drawImage(page, X.at(-1), seen);
    drawTable(page, seen, all, hidden);
    presets.hide(hidden);
    const preimages = hidden ? 0 : countPreimages(evaluator(past, M).residual, e, boxAround(e, past), Math.round(56 * state.detail));
    if (hidden) [page.live, page.detail, page.plain].forEach((line, k) => say(line, k ? "" : HIDDEN));
    else {
      tell(page, seen, all, X.length, preimages);
      say(page.plain, inPlainWords(seen.determinant, distanceTo(state.fold, X.at(-1))));
    }
    help.check(hidden ? null : { value: seen.determinant, preimages, fold: state.fold, past, c });
    coupling.set(c, format(c));
    turn.set(angle, `${format(angle, 0)}°`);
  }

  function sharpen() {
    [state.key, state.changed] = ["", -Infinity];
    draw();
  }

  const stop = watch(model, ["X", "coupling", "turn", "hidden"], draw);
  draw();
  beckon(model, page.tokens, model.get("X").at(-1), [-1, -1]);
  return () => (clearTimeout(state.later), stop());
}

function layOut(el) {
  const page = scaffold(el, "Attention explorer", [
    "Tokens: drag x or its past. Shaded: det J below ¾, ½, ¼, 0",
    "The map x ↦ e = x − mean on a grid of x. Shaded: folded over",
  ]);
  const [left, right] = page.figures;
  const tokens = new Plane(left, { half: 3, label: "Tokens. Tab selects one, arrow keys move it, Shift makes the steps finer." });
  const image = new Plane(right, { half: 3, label: "Image of the grid under the residual map; it folds along the red curve" });
  const table = html("table", { class: "sg-table" });
  assemble(page, table);
  return { ...page, tokens, image, table };
}

const name = (i, count) => (i === count - 1 ? "x" : subscript("x", i + 1));

/** The mean lies in the hull of the past, so every x with residual e lies in e plus the past's bounding box. The margins differ, lest
 * e lie in the middle of a symmetric past's box, on a line of the grid, where the triangles beside the line both claim it or neither. */
function boxAround(e, past) {
  const bound = (pick, margin) => [0, 1].map((k) => e[k] + pick(...past.map((p) => p[k])) + margin);
  return [bound(Math.min, -0.011), bound(Math.max, 0.013)];
}

function drawField(page, past, M, hidden, detail) {
  const { tokens: plane, image } = page;
  if (hidden) {
    for (const [where, names] of [[plane, ["field", "curve"]], [image, ["sheet", "folded"]]])
      names.forEach((each) => where.draw(each, [], { below: each === "field" }));
    return [];
  }
  const { determinant, residual } = evaluator(past, M);
  const field = sampleField(determinant, plane.half, Math.round(64 * detail));
  const tile = (polygons) => polygons.map((polygon) => `${plane.path(polygon)}Z`).join("");
  const shades = LEVELS.map((level) => svg("path", { d: tile(regionBelow(field, level)), class: level ? "sg-near" : "sg-turned" }));
  plane.draw("field", shades, { below: true });
  const fold = contour(field, 0);
  plane.draw("curve", [svg("path", { d: fold.map((segment) => plane.path(segment)).join(""), class: "sg-crease" })]);
  drawSheet(image, residual, sampleField(determinant, SHEET, Math.round(52 * detail)), detail);
  return fold;
}

/** How far a point lies from the nearest of some segments; Infinity when there are none. */
export function distanceTo(segments, [x, y]) {
  let least = Infinity;
  for (const [[ax, ay], [bx, by]] of segments) {
    const [u, v] = [bx - ax, by - ay];
    const along = Math.max(0, Math.min(1, ((x - ax) * u + (y - ay) * v) / (u * u + v * v || 1)));
    least = Math.min(least, Math.hypot(ax + along * u - x, ay + along * v - y));
  }
  return least;
}

/** How close attention is to folding, for somebody who has never met a determinant. */
function inPlainWords(value, distance) {
  const far = Number.isFinite(distance) ? `x is ${format(distance)} away from the fold` : "nothing in this window folds";
  if (Math.abs(value) < NEAR) return "In plain words: at the fold. In one direction x can move a little, and its residual hardly tells.";
  if (value < 0) return `In plain words: ${far.replace("away from", "beyond")}, and a small patch around x comes out mirrored.`;
  const change = value < 1 ? `shrinks to ${format(100 * value, 0)}% of its area` : `grows to ${format(value)} times its area`;
  return `In plain words: ${far}; a small patch around x ${change}.`;
}

/** The image of a grid of x under the residual map, with the part that is folded over and the crease around it. */
function drawSheet(plane, map, field, detail) {
  let lines = "";
  const half = Math.round(30 * detail);
  const along = Array.from({ length: 2 * half + 1 }, (_, m) => SHEET * (m / half - 1));
  for (let at = -SHEET; at <= SHEET; at += 1 / 3) {
    lines += plane.visible(along.map((s) => map([at, s]))) + plane.visible(along.map((s) => map([s, at])));
  }
  plane.draw("sheet", [svg("path", { d: lines, class: "sg-sheet" })]);
  const folded = regionBelow(field, 0).map((polygon) => `${plane.path(divide(polygon, 0.2).map(map))}Z`);
  const crease = contour(field, 0).map((segment) => plane.path(segment.map(map)));
  plane.draw("folded", [
    svg("path", { d: folded.join(""), class: "sg-turned" }),
    svg("path", { d: crease.join(""), class: "sg-crease" }),
  ]);
}

/** The polygon with points added on its sides, none longer than `step`: a map bends them. */
function divide(polygon, step) {
  const points = [];
  for (let k = 0; k < polygon.length; k++) {
    const [p, q] = [polygon[k], polygon[(k + 1) % polygon.length]];
    const [u, v] = [q[0] - p[0], q[1] - p[1]];
    const parts = Math.ceil(Math.max(Math.abs(u), Math.abs(v)) / step);
    for (let m = 0; m < parts; m++) points.push([p[0] + (m / parts) * u, p[1] + (m / parts) * v]);
  }
  return points;
}

function drawTokens(page, state, X, seen, { determinants, support }, hidden) {
  const { tokens: plane } = page;
  const x = X.at(-1);
  plane.draw(
    "weights",
    X.slice(0, -1).flatMap((p, j) => [
      plane.line(x, p, { class: "sg-attention", "stroke-width": 1 + 9 * seen.weights[j], style: `--fill: ${colour(j)}` }),
      plane.circle(p, 9 + 20 * Math.sqrt(seen.weights[j]), { class: "sg-weight", style: `--fill: ${colour(j)}` }),
    ]),
  );
  plane.draw("covariance", [
    ellipse(plane, seen.mean, seen.covariance),
    svg("path", { d: crossAt(plane, seen.mean), class: "sg-mean" }),
    plane.text(seen.mean, "mean", { dy: -9, class: "sg-text sg-small" }),
  ]);
  const pressed = determinants[support] < 1 && !hidden;
  for (const [i, handle] of state.handles.entries()) {
    const last = i === X.length - 1;
    const role = last ? "the token that attends" : `weight ${format(seen.weights[i])}`;
    const starred = pressed && i === support;
    handle.place(X[i], {
      fill: last ? "var(--sg-ink)" : colour(i),
      caption: name(i, X.length) + (starred ? " ★" : ""),
      away: X[i],
      ringed: starred,
      label: `token ${name(i, X.length)} at (${format(X[i][0])}, ${format(X[i][1])}), ${role}${starred ? ", support token" : ""}`,
    });
  }
}

/** The ellipse {mean + u : u . S^-1 u = 1}, from the eigenvectors of S: one standard deviation in every direction. */
function ellipse(plane, mean, [[a, b], [, d]]) {
  const [middle, spread] = [(a + d) / 2, Math.hypot((a - d) / 2, b)];
  const radius = (value) => (Math.sqrt(Math.max(value, 0)) * plane.x(plane.half)) / (2 * plane.half);
  const angle = (-0.5 * Math.atan2(2 * b, a - d) * 180) / Math.PI; // the picture's second axis points down
  return svg("ellipse", {
    rx: radius(middle + spread),
    ry: radius(middle - spread),
    class: "sg-ellipse",
    transform: `translate(${plane.x(mean[0])} ${plane.y(mean[1])}) rotate(${angle})`,
  });
}

const crossAt = (plane, p) => `M${plane.x(p[0]) - 6} ${plane.y(p[1])}h12m-6 -6v12`;

function drawImage(page, x, { mean }) {
  const e = [x[0] - mean[0], x[1] - mean[1]];
  page.image.draw("point", [
    page.image.circle(e, 8, { class: "sg-mark sg-residual" }),
    page.image.text(e, "e", { dx: 16, dy: -10 }),
  ]);
  return e;
}

function drawTable(page, seen, { determinants, support }, hidden) {
  const count = determinants.length;
  const head = html(
    "tr",
    {},
    ...["token", "attention of x", "det J (★ support token)"].map((text) => html("th", { scope: "col" }, text)),
  );
  const rows = determinants.map((value, i) => {
    const weight = seen.weights[i];
    const meter =
      weight === undefined
        ? []
        : [html("span", { class: "sg-meter", style: `width: ${90 * weight}px; background: ${colour(i)}` }), ` ${format(weight)}`];
    const star = i === support && value < 1 ? " ★" : "";
    return html(
      "tr",
      {},
      html("th", { scope: "row" }, name(i, count)),
      html("td", {}, ...meter),
      html("td", {}, hidden ? "?" : format(value) + star),
    );
  });
  page.table.replaceChildren(html("thead", {}, head), html("tbody", {}, ...rows));
}

function tell(page, seen, { determinants, support }, count, preimages) {
  const value = seen.determinant;
  const verdict =
    Math.abs(value) < NEAR
      ? "On the fold: the change of variables is singular here."
      : value < 0
        ? "Beyond the fold: the map is turned over here."
        : "Regular: nearby tokens keep their residuals apart.";
  say(page.live, verdict);
  const shared =
    preimages > 1 ? `${preimages} places in the plane share this residual e.` : "No other place shares this residual e.";
  const held =
    determinants[support] < 1
      ? `Support token: ${name(support, count)} (det J = ${format(determinants[support])}).`
      : "No token is under pressure: every det J is at least 1.";
  say(
    page.detail,
    `det J = ${format(value)}, barrier −log |det J| = ${value ? format(-Math.log(Math.abs(value))) : "∞"}. ${shared} ${held}`,
  );
}

export default { render };

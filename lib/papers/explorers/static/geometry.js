// The geometry of a softmax layer with two features: y = W x + b, W (C, 2), b (C) or null, all features x of the plane.
//
// Signs decide everything here (is w_t inside that triangle? do these three lines meet in a point?), so signs are exact: a
// determinant is computed in floating point with a bound on its rounding error, and once more in integers when it is smaller
// than that bound. Drawing (polygons, labels) is plain floating point: a pixel does not need more.
//
// No function of this file touches the page.

import { ROUNDING, TINY, determinant, orientations, sign, toIntegers } from "./exact.js";

export const MOST_CLASSES = 16; // beyond that labels overlap, and counting the rankings would hold up a drag

/** One sentence that says what is wrong with a layer, or "" when nothing is. */
export function problemWith(W, b) {
  if (!Array.isArray(W) || W.length === 0) return "W needs at least one row: one pair of numbers for each class.";
  if (W.length > MOST_CLASSES) return `W has ${W.length} rows; the explorer shows at most ${MOST_CLASSES} classes.`;
  for (const [i, row] of W.entries()) {
    if (!Array.isArray(row) || row.length !== 2) return `Row ${i + 1} of W must be a pair of numbers.`;
    if (!row.every(Number.isFinite)) return `Row ${i + 1} of W has an entry that is not a finite number.`;
  }
  if (b === null || b === undefined) return "";
  if (!Array.isArray(b) || b.length !== W.length) return `b must have one entry for each of the ${W.length} classes.`;
  const bad = b.findIndex((value) => !Number.isFinite(value));
  return bad < 0 ? "" : `Entry ${bad + 1} of b is not a finite number.`;
}

/** The lifted points (w_1, w_2, b) of the classes, with what the exact predicates need; no bias counts as zeros. */
export function makeLayer(W, b = null) {
  const points = W.map((row, i) => [row[0], row[1], b ? b[i] : 0]);
  const layer = { points, classes: W.length, biased: Boolean(b && b.some((value) => value !== 0)) };
  let integers = null;
  layer.integers = () => (integers ??= toIntegers(points)); // rarely needed, so made when it is
  layer.turn = orientations(layer);
  return layer;
}

/** Whether each class can win, and the proof for those that cannot.
 *
 * Class t never wins strictly iff convex weights l on other classes give sum l w = w_t and sum l b >= b_t: then the weighted mean of
 * the blocking classes' logits is at least y_t wherever x is. By Caratheodory three blocking classes are enough, so all triangles are tried; of
 * those around t the tightest is returned: largest excess sum l b - b_t, then fewest blocking classes from inside the hull, since
 * those could be replaced by corners, then the largest smallest weight. */
export function verdicts(layer) {
  const inside = layer.points.map((_, t) => !onHull(layer, t));
  return layer.points.map((p, t) => {
    const twin = layer.points.findIndex((q, i) => i !== t && q.every((value, k) => value === p[k]));
    const outdone = layer.points.some((q) => samePlace(p, q) && q[2] > p[2]); // then its blocking classes say more than the tie
    if (twin >= 0 && !outdone) return { verdict: "tied", twin, rivals: [], weights: [], excess: 0 };
    const blocking = tightestBlocking(layer, t, inside);
    return blocking ? { verdict: "unargmaxable", ...blocking } : { verdict: "argmaxable", rivals: [], weights: [], excess: 0 };
  });
}

function tightestBlocking(layer, t, inside) {
  const { points, turn, classes } = layer;
  let best = null;
  const consider = (guards, shares) => {
    const kept = guards.map((i, k) => [i, shares[k]]).filter(([, weight]) => weight > 0);
    const excess = kept.reduce((sum, [i, weight]) => sum + weight * points[i][2], -points[t][2]);
    const least = Math.min(...kept.map(([, weight]) => weight));
    const [rivals, weights] = [0, 1].map((column) => kept.map((pair) => pair[column]));
    const inner = rivals.filter((i) => inside[i]).length;
    const better = !best ? 1 : excess > best.excess + 1e-12 ? 1 : excess < best.excess - 1e-12 ? -1 : best.inner - inner;
    if (better > 0 || (better === 0 && least > best.least))
      best = { rivals, weights, excess: Math.max(excess, 0), inner, least };
  };
  for (let i = 0; i < classes; i++) {
    if (i === t) continue;
    if (samePlace(points[i], points[t]) && points[i][2] > points[t][2]) consider([i], [1]);
    for (let j = i + 1; j < classes; j++) {
      if (j === t) continue;
      const between = turn(i, j, t) === 0 && positionBetween(points[i], points[j], points[t]);
      if (between && edgeAbove(layer, i, j, t)) consider([i, j], [1 - between, between]);
      for (let k = j + 1; k < classes; k++) {
        const side = k === t ? 0 : turn(i, j, k);
        const [u, v, w] = side ? [turn(t, j, k) * side, turn(i, t, k) * side, turn(i, j, t) * side] : [-1, -1, -1];
        if (u < 0 || v < 0 || w < 0 || planeHeight(layer, i, j, k, t, side) < 0) continue;
        consider([i, j, k], barycentric(layer, i, j, k, t).map((weight, m) => ([u, v, w][m] === 0 ? 0 : weight)));
      }
    }
  }
  return best;
}

const samePlace = (p, q) => p[0] === q[0] && p[1] === q[1];

/** Sign of the height of the plane through the lifted points i, j, k above the lifted point t. */
function planeHeight(layer, i, j, k, t, side) {
  if (!layer.biased) return 0;
  return sign(layer, [[i, t], [j, t], [k, t]], [0, 1, 2]) * side;
}

/** Whether the segment of the lifted points i, j runs at or above the lifted point t, all three over one line of the plane. */
function edgeAbove(layer, i, j, t) {
  if (!layer.biased) return true;
  const axis = layer.points[i][0] !== layer.points[j][0] ? 0 : 1;
  const forward = Math.sign(layer.points[j][axis] - layer.points[i][axis]);
  return sign(layer, [[j, i], [t, i]], [axis, 2]) * forward <= 0;
}

/** Where q lies on the segment from p to r, strictly between 0 and 1, or 0 when it lies outside; the three are collinear. */
function positionBetween(p, r, q) {
  const axis = Math.abs(r[0] - p[0]) >= Math.abs(r[1] - p[1]) ? 0 : 1;
  if ((q[axis] - p[axis]) * (r[axis] - q[axis]) <= 0) return 0;
  return (q[axis] - p[axis]) / (r[axis] - p[axis]);
}

/** Weights of i, j, k whose mean is w_t; by integers for a triangle so thin that its area is mostly rounding. */
function barycentric(layer, i, j, k, t) {
  const edges = (points) => [j, k, t].map((m) => [points[m][0] - points[i][0], points[m][1] - points[i][1]]);
  const solve = ([u, v, x], minus, divide) => {
    const whole = determinant([u, v], minus);
    const [q, r] = [divide(determinant([x, v], minus), whole), divide(determinant([u, x], minus), whole)];
    return [1 - q - r, q, r];
  };
  const [u, v, x] = edges(layer.points);
  const thin = Math.abs(determinant([u, v], -1)) < 1e-4 * determinant([u, v].map((p) => p.map(Math.abs)), 1);
  if (!thin) return solve([u, v, x], -1, (part, whole) => part / whole);
  return solve(edges(layer.integers()), -1n, (part, whole) => Number((part << 60n) / whole) / 2 ** 60);
}

/** Whether w_t lies on the boundary of the convex hull of all class vectors: exactly then its region can be unbounded. */
export function onHull(layer, t) {
  const others = [...layer.points.keys()];
  return (
    layer.classes < 3 ||
    others.some((j) => {
      if (samePlace(layer.points[j], layer.points[t])) return false;
      const turns = others.map((k) => layer.turn(t, j, k));
      return turns.every((s) => s >= 0) || turns.every((s) => s <= 0);
    })
  );
}

/** Pairs i < j of classes, each with why no x puts both before all others, or null where some x does. For layers without a bias.
 *
 * Some x does iff a line cuts the pair off: iff its segment and the hull of the others are disjoint. Where they meet, an end of the segment lies
 * in the hull (`inside`, among these others), another class lies on the segment (`on`), or the segment crosses that of two others (`across`). */
export function pairsTogether(layer) {
  const all = [...layer.points.keys()];
  return all.flatMap((i) =>
    all.filter((j) => j > i).map((j) => {
      const others = all.filter((k) => k !== i && k !== j);
      return { pair: [i, j], why: meeting(layer, i, j, others) };
    }),
  );
}

function meeting(layer, i, j, others) {
  for (const end of [i, j]) {
    const rivals = around(layer, end, others);
    if (rivals) return { how: "inside", end, rivals };
  }
  const on = others.find((k) => within(layer, i, j, k));
  if (on !== undefined) return { how: "on", rivals: [on] };
  const { turn } = layer;
  for (const [n, k] of others.entries())
    for (const m of others.slice(n + 1))
      if (turn(i, j, k) * turn(i, j, m) < 0 && turn(k, m, i) * turn(k, m, j) < 0) return { how: "across", rivals: [k, m] };
  return null;
}

/** Others, at most three, whose hull holds w_t, or null. */
function around(layer, t, others) {
  const { points, turn } = layer;
  const twin = others.find((k) => samePlace(points[k], points[t]));
  if (twin !== undefined) return [twin];
  for (const [n, i] of others.entries())
    for (const [m, j] of others.slice(n + 1).entries()) {
      if (within(layer, i, j, t)) return [i, j];
      for (const k of others.slice(n + m + 2)) {
        const signs = [turn(i, j, t), turn(j, k, t), turn(k, i, t)];
        if (signs.every((s) => s > 0) || signs.every((s) => s < 0)) return [i, j, k];
      }
    }
  return null;
}

/** Whether w_k lies on the closed segment from w_i to w_j. */
const within = ({ points, turn }, i, j, k) =>
  turn(i, j, k) === 0 && [0, 1].every((axis) => (points[k][axis] - points[i][axis]) * (points[j][axis] - points[k][axis]) >= 0);

/** The region {x : classes i and j come before all others}, as a polygon like those of `argmaxCell`; no neighbour is told. */
export function pairCell(layer, [i, j], half) {
  let cell = square(half);
  for (let k = 0; k < layer.classes && cell.length; k++) {
    if (k === i || k === j) continue;
    for (const p of [layer.points[i], layer.points[j]])
      cell = clip(cell, [0, 1, 2].map((axis) => p[axis] - layer.points[k][axis]), k);
  }
  return cell;
}

/** Corners of the convex hull of points of the plane, counter-clockwise (Andrew's monotone chain). */
export function convexHull(points) {
  const sorted = [...points].sort((p, q) => p[0] - q[0] || p[1] - q[1]);
  const left = (p, q, r) => (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0]) > 0;
  const chain = (list) => {
    const corners = [];
    for (const p of list) {
      while (corners.length > 1 && !left(corners.at(-2), corners.at(-1), p)) corners.pop();
      corners.push(p);
    }
    return corners.slice(0, -1);
  };
  return sorted.length < 2 ? sorted : [...chain(sorted), ...chain(sorted.reverse())];
}

/** The square |x_1|, |x_2| <= half as a polygon whose edges have no neighbour yet. */
export const square = (half) => [[-half, -half, -1], [half, -half, -1], [half, half, -1], [-half, half, -1]];

/** The part of a convex polygon where a.x + c > 0; the new edge is labelled. A vertex is [x_1, x_2, label of the edge that starts there]. */
export function clip(polygon, [a1, a2, c], label) {
  const kept = [];
  for (const [m, p] of polygon.entries()) {
    const q = polygon[(m + 1) % polygon.length];
    const [u, v] = [a1 * p[0] + a2 * p[1] + c, a1 * q[0] + a2 * q[1] + c];
    if (u > 0) kept.push(p);
    if (u > 0 !== v > 0) {
      const s = u / (u - v);
      kept.push([p[0] + s * (q[0] - p[0]), p[1] + s * (q[1] - p[1]), u > 0 ? label : p[2]]);
    }
  }
  return kept;
}

/** The region {x : class t wins} inside the square of the given half width; its edges are labelled by the class behind them. */
export function argmaxCell(layer, t, half) {
  let cell = square(half);
  const p = layer.points[t];
  for (let i = 0; i < layer.classes && cell.length; i++) {
    const q = layer.points[i];
    if (i !== t) cell = clip(cell, [p[0] - q[0], p[1] - q[1], p[2] - q[2]], i);
  }
  return cell;
}

/** Area centroid of a polygon: inside it when it is convex, so a good place for a label. */
export function centroid(polygon) {
  let [area, x, y] = [0, 0, 0];
  for (const [m, p] of polygon.entries()) {
    const q = polygon[(m + 1) % polygon.length];
    const turn = p[0] * q[1] - q[0] * p[1];
    [area, x, y] = [area + turn, x + turn * (p[0] + q[0]), y + turn * (p[1] + q[1])];
  }
  return { area: area / 2, at: [x / (3 * area), y / (3 * area)] };
}

/** Regions of the braid arrangement seen from the features, counted exactly: the rankings that the layer can realise.
 *
 * Each new line adds one region, and one more for each distinct point where it meets the earlier lines. */
export function countRankings(layer) {
  const lines = tieLines(layer);
  if (lines === null) return { regions: 0, bounded: 0, lines: 0 };
  const count = lines.a.length;
  if (!layer.biased) return { regions: Math.max(2 * count, 1), bounded: 0, lines: count }; // all of them through the origin
  let crossings = 0; // sum over points of (number of lines through it - 1)
  for (let k = 0; k < count; k++) {
    const met = [];
    for (let p = 0; p < k; p++) {
      if (parallel(layer, lines, k, p)) continue; // no common point
      if (!met.some((q) => concurrent(layer, lines, k, p, q))) met.push(p);
    }
    crossings += met.length;
  }
  const bounded = crossings ? 1 - count + crossings : 0; // lines that are all parallel bound nothing in the plane
  return { regions: 1 + count + crossings, bounded, lines: count };
}

/** Whether three lines that are not parallel meet in one point. Written out: a dozen classes ask this 70,000 times. */
function concurrent(layer, { i, j, a, b, c }, k, p, q) {
  const [bc, cb, ca, ac, ab, ba] = [b[p] * c[q], c[p] * b[q], c[p] * a[q], a[p] * c[q], a[p] * b[q], b[p] * a[q]];
  const value = a[k] * (bc - cb) + b[k] * (ca - ac) + c[k] * (ab - ba);
  const size =
    Math.abs(a[k]) * (Math.abs(bc) + Math.abs(cb)) +
    Math.abs(b[k]) * (Math.abs(ca) + Math.abs(ac)) +
    Math.abs(c[k]) * (Math.abs(ab) + Math.abs(ba));
  if (size > TINY && Math.abs(value) > ROUNDING * size) return false;
  if (new Set([i[k], j[k], i[p], j[p], i[q], j[q]]).size === 3) return true; // y_i = y_j = y_k: they always meet
  return sign(layer, [[i[k], j[k]], [i[p], j[p]], [i[q], j[q]]], [0, 1, 2]) === 0;
}

/** The distinct lines y_i = y_j as parallel arrays, or null when two classes tie everywhere. */
function tieLines(layer) {
  const lines = { i: [], j: [], a: [], b: [], c: [] };
  for (let j = 0; j < layer.classes; j++) {
    for (let i = 0; i < j; i++) {
      const [p, q] = [layer.points[i], layer.points[j]];
      if (samePlace(p, q)) {
        if (p[2] === q[2]) return null;
        continue; // equal rows and different biases: the order of the two never changes
      }
      if (lines.i.some((_, k) => sameLine(layer, [lines.i[k], lines.j[k]], [i, j]))) continue;
      (lines.i.push(i), lines.j.push(j));
      (lines.a.push(p[0] - q[0]), lines.b.push(p[1] - q[1]), lines.c.push(p[2] - q[2]));
    }
  }
  return lines;
}

/** Whether line k is parallel to line p. */
function parallel(layer, { i, j, a, b }, k, p) {
  const [left, right] = [a[k] * b[p], b[k] * a[p]];
  const size = Math.abs(left) + Math.abs(right);
  if (size > TINY && Math.abs(left - right) > ROUNDING * size) return false;
  return sign(layer, [[i[k], j[k]], [i[p], j[p]]], [0, 1]) === 0;
}

/** Whether two tie lines, each given as a pair of classes, are one line. */
const sameLine = (layer, first, second) =>
  [[0, 1], [0, 2], [1, 2]].every((columns) => sign(layer, [first, second], columns) === 0);

/** The count for C classes in general position (001, Appendix C): in two features, one (class vectors on a line) or none. */
export function rankingFormula(C, dimension, biased) {
  const stirling = [1, (C * (C - 1)) / 2, (C * (C - 1) * (C - 2) * (3 * C - 1)) / 24]; // c(C, C - k), k = 0, 1, 2
  if (biased) return stirling.slice(0, dimension + 1).reduce((sum, value) => sum + value, 0);
  if (C === 1) return 1;
  return dimension === 2 ? 2 * stirling[1] : dimension === 1 ? 2 : 0;
}

/** Dimension and bias that count for the rankings: a bias that is an affine function of the class vectors only shifts x. */
export function effectiveShape(layer) {
  const { points, turn, classes } = layer;
  const second = points.findIndex((p) => !samePlace(p, points[0]));
  const uneven = points.some((p) => p[2] !== points[0][2]);
  if (second < 0) return { dimension: 0, biased: uneven };
  const third = points.findIndex((_, k) => turn(0, second, k) !== 0);
  if (third < 0) {
    const axis = points[second][0] !== points[0][0] ? 0 : 1;
    return { dimension: 1, biased: points.some((_, k) => sign(layer, [[second, 0], [k, 0]], [axis, 2]) !== 0) };
  }
  const coplanar = (k) => sign(layer, [[second, 0], [third, 0], [k, 0]], [0, 1, 2]) === 0;
  return { dimension: 2, biased: classes > 3 && !points.every((_, k) => coplanar(k)) };
}

/** How probable class t can become for x in the square |x_i| <= half: what a point reaches (the logarithm is concave, so nested thirds
 * find it), and what the softmax q there proves for every such x, exp(-(H(q) + b.(q - e_t) - half |w_t - sum q w|_1)). The library's
 * ceilings bound the rounding, too. */
export function ceiling({ points }, t, half) {
  const at = (u, v) => {
    const y = points.map(([a, b, c]) => a * u + b * v + c);
    const top = Math.max(...y);
    const total = top + Math.log(y.reduce((sum, value) => sum + Math.exp(value - top), 0));
    return y.map((value) => value - total);
  };
  const best = (f) => {
    let [low, high] = [-half, half];
    for (let k = 0; k < 40; k++) {
      const third = (high - low) / 3;
      if (f(low + third) < f(high - third)) low += third;
      else high -= third;
    }
    return (low + high) / 2;
  };
  const along = (u) => best((v) => at(u, v)[t]);
  const u = best((u) => at(u, along(u))[t]);
  const logs = at(u, along(u));
  const mean = (k) => points.reduce((sum, p, i) => sum + Math.exp(logs[i]) * p[k], 0);
  const entropy = -logs.reduce((sum, value) => sum + Math.exp(value) * value, 0);
  const apart = Math.abs(points[t][0] - mean(0)) + Math.abs(points[t][1] - mean(1));
  return { reached: Math.exp(logs[t]), ceiling: Math.min(1, Math.exp(half * apart - entropy - mean(2) + points[t][2])) };
}

/** Logits, softmax probabilities and the order of the classes (highest first) at the feature vector x. */
export function evaluate(layer, x) {
  const logits = layer.points.map((p) => p[0] * x[0] + p[1] * x[1] + p[2]);
  const top = Math.max(...logits);
  const exponentials = logits.map((y) => Math.exp(y - top));
  const total = exponentials.reduce((sum, e) => sum + e, 0);
  const order = [...logits.keys()].sort((i, j) => logits[j] - logits[i]);
  return { logits, probabilities: exponentials.map((e) => e / total), order };
}

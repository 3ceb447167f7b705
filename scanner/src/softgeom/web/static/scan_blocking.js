// Do these weights prove that a class can never win? The library's three routes (certifying/hull.py), with the same bounds on rounding.
//
// For weights l >= 0 on rivals, v = sum l_i (w_t - w_i) and c = sum l_i (b_t - b_i), every x of the set has  (sum l) margin_t(x) <= max v.x + c.
// 1. room: the right side in float64 with its rounding; 2. simplex: v vanishes for weights that must exist near these; 3. exact: in integers.

import { inverseOf } from "./scan_bases.js";
import { INFLATE, gamma, normUp, rowOf, underflow } from "./scan_layer.js";
import { ellipsoidSupport } from "./scan_norm.js";
import { toIntegers } from "./exact.js";

const VANISHING = 1e-6; // v_k counts as zero below this fraction of sum l_i |w_t - w_i|_k
const NEAR_TIE = 1e-6;
const EXACT_ENTRIES = 2 ** 15; // products that the third route may take
const SINGULAR = 1e-14; // below it the library's checker calls a system singular; here ten times as much
const CLAIM = 8; // a claim counts each rounding bound so many times: then every machine confirms it

/** An upper bound <= 0 on the best margin of class t that the weights prove; Infinity when they prove nothing. Largest weight in [1/2, 1). */
export function certifyBlocking(searched, t, rivals, weights) {
  const layer = searched.stated ?? searched; // behind a normalisation the rows as they are stored, over its ellipsoid
  if (!rivals.length || rivals.includes(t) || weights.some((w) => !(w > 0 && w < 1)) || Math.max(...weights) < 0.5) return Infinity;
  const system = makeSystem(layer, t, rivals, weights);
  const [room, slack] = roomOf(layer, system);
  if (room <= -CLAIM * slack) return divideUp(room + CLAIM * slack, system.total);
  if (room <= 0) return Infinity; // what proves here may fail elsewhere
  const simplex = simplexBound(layer, system);
  if (simplex <= 0) return simplex;
  return rivals.length * layer.d <= EXACT_ENTRIES && isNearTie(layer, system) && holdsExactly(layer, t, rivals, weights) ? 0 : Infinity;
}

function makeSystem(layer, t, rivals, weights) {
  const { d, b } = layer;
  const k = rivals.length;
  const own = rowOf(layer, t);
  const D = new Float64Array(k * d);
  const [v, size] = [new Float64Array(d), new Float64Array(d)];
  const moves = new Uint8Array(d); // where rows differ, be the sums so small that they vanish
  const c = new Float64Array(k);
  let [total, constant, sizes] = [0, 0, 0];
  rivals.forEach((i, n) => {
    const row = rowOf(layer, i);
    for (let j = 0; j < d; j++) {
      const x = own[j] - row[j];
      D[n * d + j] = x;
      v[j] += weights[n] * x;
      size[j] += weights[n] * Math.abs(x);
      if (x) moves[j] = 1;
    }
    c[n] = b[t] - b[i];
    total += weights[n];
    constant += weights[n] * c[n];
    sizes += weights[n] * Math.abs(c[n]);
  });
  const slip = gamma(k + 3);
  const error = size.map((s, j) => (moves[j] ? slip * s * INFLATE + underflow(k + 3) : 0));
  const constantError = slip * sizes * INFLATE + (c.some((x) => x) ? underflow(k + 3) : 0);
  const level = c.every((x) => x <= 0);
  return { k, D, v, size, moves, c, total, constant, constantError, sizes, error, level, weights };
}

/** max of v.x over the set for every v within the error: [bound, sum of sizes]; without an error, what v itself gives. */
function support({ set }, v, error = null) {
  const off = (k) => (error ? error[k] : 0);
  if (set.kind === "ellipsoid") return ellipsoidSupport(set, v, error);
  if (set.kind === "unbounded") return v.some((x, k) => x || off(k)) ? [Infinity, Infinity] : [0, 0];
  if (set.kind === "ball") {
    const norm = normUp(v.map((x, k) => Math.abs(x) + off(k)));
    const reach = set.radius * norm + (norm ? underflow(1) : 0);
    return [reach, reach];
  }
  let [sum, sizes, terms] = [0, 0, 0];
  for (let k = 0; k < v.length; k++) {
    const [least, most] = [v[k] - off(k), v[k] + off(k)];
    const term = Math.max(set.low * least, set.low * most, set.high * least, set.high * most);
    if (term || (most > 0 && set.high > 0) || (least < 0 && set.low < 0)) terms++;
    sum += term;
    sizes += Math.abs(term);
  }
  const lost = underflow(terms);
  return [sum + lost, sizes + lost];
}

/** The right side, rounded up, and how much of it is rounding. */
function roomOf(layer, { v, error, constant, constantError }) {
  const [bound, size] = support(layer, v, error);
  const sums = gamma(layer.d + 8) * (size + Math.abs(constant) + constantError) * INFLATE;
  const [plain] = support(layer, v);
  return [bound + constant + constantError + sums, bound - plain + constantError + sums];
}

function simplexBound(layer, system) {
  const { d } = layer;
  const { k, weights, c, constant, constantError, level } = system;
  const { E, entry, width, v, size, moves, error } = equalities(layer, system);
  const tiny = v.map((x, j) => Number(Math.abs(x) <= VANISHING * size[j]));
  const K = [...v.keys()].filter((j) => tiny[j] && moves[j]);
  const m = K.length + 1;
  if (m !== k || !mayVanish(layer.set, tiny)) return Infinity;
  const [A, slips] = [new Float64Array(m * m), new Float64Array(m * m)];
  let miss = 0;
  for (const [r, j] of K.entries()) {
    let scale = 0;
    for (let n = 0; n < k; n++) scale = Math.max(scale, Math.abs(E[n * width + j]));
    for (let n = 0; n < k; n++) A[r * m + n] = -E[n * width + j] / scale;
    for (let n = 0; n < k; n++) slips[r * m + n] = entry ? entry[n * width + j] / scale : 0;
    miss = Math.max(miss, (Math.abs(v[j]) + error[j]) / scale);
  }
  A.fill(1, (m - 1) * m);
  if (!isFarFromSingular(A, weights, m)) return Infinity;
  const R = inverseOf(A, m);
  const loss = R ? identityError(A, R, m, slips) : 1;
  if (!(loss < 0.5)) return Infinity;
  const delta = weights.map((_, n) => {
    let sum = 0;
    for (let j = 0; j < m; j++) sum += Math.abs(R[n * m + j]);
    return ((sum * miss * (1 + gamma(8))) / (1 - loss)) * INFLATE * (1 + gamma(k + 8)) + underflow(k + 8);
  });
  if (delta.some((change, n) => !(CLAIM * change < weights[n]))) return Infinity;
  const shift = constantError + delta.reduce((sum, change, n) => sum + change * Math.abs(c[n]), 0) * INFLATE;
  const bound = level ? Math.min(constant + shift, 0) : constant + shift;
  const rest = v.map((x, j) => (tiny[j] ? 0 : x));
  const moved = v.map((_, j) => (tiny[j] ? 0 : error[j] + delta.reduce((sum, change, n) => sum + change * Math.abs(E[n * width + j]), 0) * INFLATE));
  let [far, slack] = [0, 0];
  if (rest.some((x) => x)) {
    const [most, sizes] = support(layer, rest, moved);
    slack = gamma(d + 8) * (sizes + Math.abs(bound)) * INFLATE;
    far = most + slack;
    slack += most - support(layer, rest)[0];
  }
  const right = far + bound;
  const claim = right + CLAIM * (slack + shift);
  if (level && !far) return divideUp(Math.min(claim, 0), system.total * 2); // never above 0, wherever the weights move
  return claim <= 0 ? divideUp(claim, system.total * 2) : Infinity;
}

/**
 * What has to vanish for v to have no support: columns of E (k, width) with the errors of their entries, and v and its sizes in them. It is v itself, and
 * behind an RMSNorm gain v vanishes where v does; a LayerNorm leaves gain v constant, that is, less its last entry, 0.
 */
function equalities({ set, d }, { k, D, v, size, moves, error, weights }) {
  if (!set.centred) return { E: D, entry: null, width: d, v, size, moves, error };
  const width = d - 1;
  const [E, entry] = [new Float64Array(k * width), new Float64Array(k * width)];
  const [along, sizes, slip] = [new Float64Array(width), new Float64Array(width), new Float64Array(width)];
  for (let n = 0; n < k; n++) {
    const last = set.gain[width] * D[n * d + width];
    for (let j = 0; j < width; j++) {
      const own = set.gain[j] * D[n * d + j];
      const at = n * width + j;
      E[at] = own - last;
      entry[at] = gamma(4) * (Math.abs(own) + Math.abs(last)) + underflow(2);
      along[j] += weights[n] * E[at];
      sizes[j] += weights[n] * Math.abs(E[at]);
      slip[j] += weights[n] * entry[at] * INFLATE;
    }
  }
  const off = sizes.map((x, j) => gamma(k + 3) * x * INFLATE + slip[j] * INFLATE + underflow(k + 3));
  const moved = Array.from(set.gain, (g, j) => Number(g !== 0 && moves[j] === 1));
  return { E, entry, width, v: along, size: sizes, moves: moved.slice(0, width).map((m) => m || moved[width]), error: off };
}

/** Whether this route says something about the set: without a bound and behind a normalisation all of v has to vanish; a shift puts v into the constants. */
function mayVanish(set, tiny) {
  if (set.kind === "ellipsoid" && set.shift.some((x) => x)) return false;
  return set.kind === "box" || set.kind === "ball" || tiny.every((x) => x);
}

/** Whether no row of A, each column times its weight, nearly lies among those above it: the library's checker inverts A by way of these. */
function isFarFromSingular(A, weights, m) {
  const rows = Array.from({ length: m }, (_, r) => weights.map((w, n) => w * A[r * m + n]));
  let [least, most] = [Infinity, 0];
  rows.forEach((row, r) => {
    for (const unit of rows.slice(0, r)) {
      const along = row.reduce((sum, x, n) => sum + x * unit[n], 0);
      most = Math.max(most, Math.abs(along));
      for (let n = 0; n < m; n++) row[n] -= along * unit[n];
    }
    const size = Math.hypot(...row);
    [least, most] = [Math.min(least, size), Math.max(most, size)];
    for (let n = 0; n < m; n++) row[n] /= size || 1;
  });
  return least > 10 * SINGULAR * most;
}

/** An upper bound on the largest row sum of |I - A R|, entries of A being known to within the slips. */
function identityError(A, R, m, slips) {
  const slip = gamma(m + 2) + gamma(8);
  let most = 0;
  const [row, size, off] = [new Float64Array(m), new Float64Array(m), new Float64Array(m)];
  for (let i = 0; i < m; i++) {
    for (const sums of [row, size, off]) sums.fill(0);
    for (let n = 0; n < m; n++) {
      const a = A[i * m + n];
      for (let j = 0, r = n * m; j < m; j++) {
        row[j] += a * R[r + j];
        size[j] += Math.abs(a * R[r + j]);
        off[j] += slips[i * m + n] * Math.abs(R[r + j]);
      }
    }
    let sum = 0;
    for (let j = 0; j < m; j++) sum += Math.abs(Number(i === j) - row[j]) + (slip * size[j] + off[j]) * INFLATE + underflow(m + 2);
    most = Math.max(most, sum * INFLATE);
  }
  return most;
}

function isNearTie(layer, { v, size, constant, sizes }) {
  const { set } = layer;
  if (set.kind === "ellipsoid") return false; // products with the gain are no short fractions
  if (set.kind === "unbounded") return v.every((x, k) => Math.abs(x) <= VANISHING * size[k]);
  const extent = set.kind === "box" ? Math.max(Math.abs(set.low), Math.abs(set.high)) : set.radius;
  const whole = extent * size.reduce((sum, x) => sum + x, 0) + sizes;
  return support(layer, v)[0] + constant <= NEAR_TIE * whole;
}

/** The inequality itself, in integers: every float is one over a power of two. */
function holdsExactly(layer, t, rivals, weights) {
  const { set, d, b } = layer;
  const chosen = [t, ...rivals];
  const rows = toIntegers(chosen.map((i) => [...rowOf(layer, i), 1])); // the 1 tells their common unit
  const unit = rows[0][d];
  const biases = toIntegers([chosen.map((i) => b[i]).concat(1)])[0];
  const bounds = { box: [set.low, set.high], ball: [set.radius], unbounded: [] }[set.kind];
  const [wholeBounds, whole] = [toIntegers([[...bounds, 1]])[0], toIntegers([weights])[0]];
  const scale = wholeBounds.at(-1);
  const v = Array.from({ length: d }, (_, j) => whole.reduce((sum, l, n) => sum + l * (rows[0][j] - rows[n + 1][j]), 0n));
  const c = whole.reduce((sum, l, n) => sum + l * (biases[0] - biases[n + 1]), 0n);
  if (set.kind === "unbounded") return c <= 0n && v.every((x) => x === 0n);
  // v stands over `unit`, c over biases.at(-1), bounds over `scale`: bring both sides over their product.
  const [left, right] = [biases.at(-1), c * unit * scale];
  if (set.kind === "box") {
    const [low, high] = wholeBounds;
    return v.reduce((sum, x) => sum + (x > 0n ? high * x : low * x), 0n) * left + right <= 0n;
  }
  return right <= 0n && wholeBounds[0] ** 2n * v.reduce((sum, x) => sum + x * x, 0n) * left ** 2n <= right ** 2n;
}

/** right / total <= 0, rounded up. */
function divideUp(right, total) {
  const bound = (right / total) * (1 - 1e-9);
  return bound < -underflow(1) ? bound : 0;
}

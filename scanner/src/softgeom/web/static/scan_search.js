// Points at which classes win: one look at every rival from the far point of each class, then ascent against the strongest rivals.

import { INFLATE, farPoint, isInside, project, rowOf, times } from "./scan_layer.js";
import { roundingAt } from "./scan_norm.js";

const RIVALS = 32; // that join a working set at each look
const ROUNDS = 8; // of ascent; a class that is beaten by its own working set in three of them is left to the proofs
const MOST_STEPS = 80;
const TEMPERATURE = 0.05; // of the smoothing, relative to the spread of the working set's logits
const GROUP = 4; // candidates that one pass over the rows serves

/** Logits of n <= 4 points Z (n, d) against all rows, into Y (n, C). */
export function logits(layer, Z, n, Y) {
  const { W, b, classes: C, d } = layer;
  if (n < GROUP) {
    for (let p = 0; p < n; p++) {
      const y = times(W, Z.subarray(p * d, (p + 1) * d), C, Y.subarray(p * C, (p + 1) * C));
      for (let i = 0; i < C; i++) y[i] += b[i];
    }
    return;
  }
  let i = 0;
  for (; i + 1 < C; i += 2) {
    let a0 = b[i], a1 = a0, a2 = a0, a3 = a0;
    let c0 = b[i + 1], c1 = c0, c2 = c0, c3 = c0;
    const w = i * d;
    for (let k = 0; k < d; k++) {
      const p = W[w + k], q = W[w + d + k];
      const x0 = Z[k], x1 = Z[d + k], x2 = Z[2 * d + k], x3 = Z[3 * d + k];
      a0 += p * x0; a1 += p * x1; a2 += p * x2; a3 += p * x3;
      c0 += q * x0; c1 += q * x1; c2 += q * x2; c3 += q * x3;
    }
    Y[i] = a0; Y[C + i] = a1; Y[2 * C + i] = a2; Y[3 * C + i] = a3;
    Y[i + 1] = c0; Y[C + i + 1] = c1; Y[2 * C + i + 1] = c2; Y[3 * C + i + 1] = c3;
  }
  for (; i < C; i++)
    for (let p = 0; p < 4; p++) {
      let sum = b[i];
      for (let k = 0; k < d; k++) sum += W[i * d + k] * Z[p * d + k];
      Y[p * C + i] = sum;
    }
}

/** One look at everybody from z: the margin of class t in float64, and on demand its strongest rivals. */
export function look(layer, t, z, Y = new Float64Array(layer.classes), count = 0) {
  logits(layer, z, 1, Y);
  return weigh(layer, t, Y, count);
}

function weigh({ classes }, t, Y, count) {
  let best = -Infinity;
  for (let i = 0; i < classes; i++) if (i !== t && Y[i] > best) best = Y[i];
  return { margin: Y[t] - best, strongest: count ? largest(Y, t, count) : null };
}

/** Places of the `count` largest of Y but t. */
function largest(Y, t, count) {
  const kept = [];
  let floor = -Infinity;
  for (let i = 0; i < Y.length; i++) {
    if (i === t || Y[i] <= floor) continue;
    kept.push(i);
    if (kept.length >= 4 * count + 64) {
      kept.sort((p, q) => Y[q] - Y[p]);
      kept.length = count;
      floor = Y[kept[count - 1]];
    }
  }
  return kept.sort((p, q) => Y[q] - Y[p]).slice(0, count);
}

/**
 * A lower bound on the margin that float64 found at z: what rounding can have moved each logit by is taken off twice. -Infinity outside the
 * set; positive, it proves that the class wins.
 */
export function certifiedMargin(layer, z, margin) {
  if (layer.classes === 1) return isInside(layer, z) ? Infinity : -Infinity;
  const error = roundingAt(layer, z);
  const lower = margin - 2 * error * INFLATE;
  const bound = lower - Math.abs(lower) * 4 * 2 ** -52;
  return bound > 8 * error && isInside(layer, z) ? bound : -Infinity; // nearer than that, another machine might not see it
}

/**
 * The first look at every class that is asked about, four at a time; `found(t, z, bound)` hears of those that win, and the others come back with
 * their strongest rivals. A generator: it stops for breath.
 */
export function* firstLook(layer, classes, found) {
  const { classes: C, d } = layer;
  const [Z, Y] = [new Float64Array(GROUP * d), new Float64Array(GROUP * C)];
  const lost = [];
  for (let start = 0; start < classes.length; start += GROUP) {
    const some = classes.slice(start, start + GROUP);
    some.forEach((t, p) => farPoint(layer, t, Z.subarray(p * d, (p + 1) * d)));
    logits(layer, Z, some.length, Y);
    some.forEach((t, p) => {
      const z = Z.slice(p * d, (p + 1) * d);
      const y = Y.subarray(p * C, (p + 1) * C);
      const bound = certifiedMargin(layer, z, weigh(layer, t, y, 0).margin);
      if (bound > 0) found(t, z, bound);
      else lost.push({ t, z, rivals: new Set(largest(y, t, RIVALS)), steps: 0, stuck: 0 });
    });
    yield start + some.length;
  }
  return lost;
}

/** Ascent for those that lost, in rounds that go on while this share of the climbers wins; those still open come back. */
export function* climb(layer, lost, found, { worth = 0, first = 20, count = RIVALS } = {}) {
  const Y = new Float64Array(layer.classes);
  let [left, steps] = [lost, first];
  const open = [];
  for (let round = 0; round < ROUNDS && left.length; round++) {
    const still = [];
    const beaten = open.length;
    for (const [n, one] of left.entries()) {
      const lead = ascend(layer, one, steps);
      one.steps += steps;
      const seen = look(layer, one.t, one.z, Y, count);
      const bound = certifiedMargin(layer, one.z, seen.margin);
      one.stuck += Number(lead >= 0);
      for (const i of seen.strongest) one.rivals.add(i);
      if (bound > 0) found(one.t, one.z, bound, one.steps);
      else (one.stuck < 3 ? still : open).push(one);
      yield { round, done: n + 1, of: left.length };
    }
    const paid = open.length - beaten + still.length <= (1 - worth) * left.length;
    left = still;
    steps = Math.min(2 * steps, MOST_STEPS);
    if (!paid) break;
  }
  return [...open, ...left];
}

/** Polyak steps on the smoothed margin against the working set: moves `one.z` to the best point; the lead of its best rival there. */
function ascend(layer, one, steps) {
  const { d } = layer;
  const rivals = [...one.rivals];
  const own = rowOf(layer, one.t);
  const k = rivals.length;
  const A = new Float64Array(k * d);
  const c = new Float64Array(k);
  rivals.forEach((i, n) => {
    const row = rowOf(layer, i);
    for (let j = 0; j < d; j++) A[n * d + j] = row[j] - own[j];
    c[n] = layer.b[i] - layer.b[one.t];
  });
  const [z, g, lead] = [one.z.slice(), new Float64Array(d), new Float64Array(k)];
  let best = one.z;
  let bestLead = Infinity;
  for (let step = 0; step < steps; step++) {
    let worst = -Infinity;
    let mean = 0;
    times(A, z, k, lead);
    for (let n = 0; n < k; n++) {
      lead[n] += c[n];
      if (lead[n] > worst) worst = lead[n];
      mean += lead[n] / k;
    }
    if (worst < bestLead) [bestLead, best] = [worst, z.slice()];
    const target = Math.max(worst - mean, 1e-12) * TEMPERATURE;
    g.fill(0);
    let total = 0;
    for (let n = 0; n < k; n++) {
      const p = Math.exp((lead[n] - worst) / target);
      if (p < 1e-9) continue;
      total += p;
      for (let j = 0, a = n * d; j < d; j++) g[j] += p * A[a + j];
    }
    let square = 0;
    for (let j = 0; j < d; j++) square += (g[j] /= total) ** 2;
    const stride = (Math.max(worst, 0) + target) / Math.max(square, 1e-30);
    for (let j = 0; j < d; j++) z[j] -= stride * g[j];
    project(layer, z);
  }
  one.z = best;
  return bestLead;
}

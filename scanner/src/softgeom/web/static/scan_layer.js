// A layer as the scan on a page holds it: float64 numbers in units of order one, and the bounds on their rounding (Higham 2002, Section 3.1).

export const INFLATE = 1 + 1e-9; // a bound is itself a short computation: its relative error is far below this
const FAR_OUT = 1024; // rows are of order one: there a difference of theirs outweighs the biases

/** n u / (1 - n u) for float64: n products and sums, in any order, are off by at most this times the sum of their sizes. */
export function gamma(n) {
  const nu = n * 2 ** -53;
  return (nu / (1 - nu)) * INFLATE;
}

/** What n operations can lose below the normal range. */
export const underflow = (n) => 4 * n * 2 ** -1022;

/** An upper bound on the 2-norm of v[from .. from + n). */
export function normUp(v, from = 0, n = v.length) {
  let [squares, largest] = [0, 0];
  for (let k = from; k < from + n; k++) {
    squares += v[k] * v[k];
    largest = Math.max(largest, Math.abs(v[k]));
  }
  return largest ? Math.sqrt(squares * (1 + gamma(n + 2)) + underflow(n)) * INFLATE + underflow(1) : 0;
}

/** The largest absolute value. */
export const greatest = (v) => v.reduce((most, x) => Math.max(most, Math.abs(x)), 0);

/** The e with 2^(e-1) <= size < 2^e, as C's frexp has it; 0 for 0, and infinity for itself. */
export function exponent(size) {
  if (!size || size === Infinity) return size || 0;
  let e = Math.floor(Math.log2(size)) + 1;
  while (2 ** e <= size) e++;
  while (2 ** (e - 1) > size) e--;
  return e;
}

/**
 * W (C, d, row by row) and b (C, or null) with rows divided by a power of two, and the features multiplied by it: logits and margins stay
 * what they are, to the bit. `set` is {kind: "box", low, high}, {kind: "ball", radius} in the units that the reader chose, or {kind: "unbounded"}.
 */
export function makeScanLayer(W, b, classes, d, set) {
  const power = exponent(greatest(W));
  const extent = { box: () => Math.max(Math.abs(set.low), Math.abs(set.high)), ball: () => set.radius, unbounded: () => 1 }[set.kind]();
  const offset = b ? greatest(b) : 0;
  if (Math.abs(power) > 40 || Math.abs(exponent(extent)) > 40 || Math.abs(exponent(offset)) > 40)
    throw new Error("The numbers of this layer, or the bound, are beyond 2^40 or below 2^-40: softgeom scan rescales such layers, this page does not.");
  const unit = 2 ** power;
  const scaled = W.map((value) => value / unit);
  for (let i = 0; i < W.length; i++)
    if (scaled[i] * unit !== W[i]) throw new Error("The sizes in this layer are too far apart for this page: use softgeom scan.");
  const moved = Object.fromEntries(Object.entries(set).map(([name, value]) => [name, name === "kind" ? value : value * unit]));
  if (set.kind === "unbounded") moved.high = -(moved.low = -FAR_OUT * 2 ** Math.max(exponent(offset), 0)); // where winners are looked for
  const layer = { W: scaled, b: b ? Float64Array.from(b) : new Float64Array(classes), biased: b !== null, classes, d, unit, set: moved };
  layer.mean = meanRow(layer);
  layer.norms = new Float64Array(classes).map((_, i) => normUp(scaled, i * d, d));
  layer.norm = greatest(layer.norms);
  layer.offset = offset;
  return layer;
}

function meanRow({ W, classes, d }) {
  const mean = new Float64Array(d);
  for (let i = 0; i < classes; i++) for (let k = 0; k < d; k++) mean[k] += W[i * d + k];
  return mean.map((value) => value / classes);
}

/** M @ v for the first `rows` rows of M, row by row, into `out`: four sums at a time, since a processor need not wait for one to begin the next. */
export function times(M, v, rows, out = new Float64Array(rows)) {
  const n = v.length;
  let i = 0;
  for (; i + 3 < rows; i += 4) {
    let [p, q, r, s] = [0, 0, 0, 0];
    for (let k = 0, a = i * n, b = a + n, c = b + n, e = c + n; k < n; k++) {
      const x = v[k];
      p += M[a + k] * x;
      q += M[b + k] * x;
      r += M[c + k] * x;
      s += M[e + k] * x;
    }
    [out[i], out[i + 1], out[i + 2], out[i + 3]] = [p, q, r, s];
  }
  for (; i < rows; i++) {
    out[i] = 0;
    for (let k = 0; k < n; k++) out[i] += M[i * n + k] * v[k];
  }
  return out;
}

/** Row i, a view. */
export const rowOf = (layer, i) => layer.W.subarray(i * layer.d, (i + 1) * layer.d);

/** The box in which features are looked for: the set itself, one around the ball, or a large one where there is no bound. */
export const boxAround = ({ set }) => (set.kind === "ball" ? [-set.radius, set.radius] : [set.low, set.high]);

/** Move z to the nearest point of the set, in place. */
export function project(layer, z) {
  const { set } = layer;
  if (set.kind !== "ball") {
    for (let k = 0; k < z.length; k++) z[k] = Math.min(Math.max(z[k], set.low), set.high);
    return z;
  }
  const norm = Math.hypot(...z);
  const shrink = (set.radius * (1 - 1e-6)) / norm; // room for rounding
  if (shrink < 1) for (let k = 0; k < z.length; k++) z[k] *= shrink;
  return z;
}

/** A point of the set far out in the direction of a row from the mean row. */
export function farPoint(layer, t, z) {
  const { set, d, mean } = layer;
  const own = rowOf(layer, t);
  for (let k = 0; k < d; k++) z[k] = own[k] - mean[k];
  const [low, high] = boxAround(layer);
  const step = set.kind === "ball" ? set.radius / (Math.hypot(...z) || 1) : Math.max(-low, high) / (greatest(z) || 1);
  const anchor = set.kind === "ball" ? 0 : Math.min(Math.max(0, low), high);
  for (let k = 0; k < d; k++) z[k] = anchor + z[k] * step;
  return project(layer, z);
}

/** Whether a point certainly lies in the set. */
export function isInside({ set, d }, z) {
  if (z.length !== d) return false;
  if (set.kind !== "ball") return z.every((value) => set.low <= value && value <= set.high);
  let squares = 0;
  for (const value of z) squares += value * value;
  return squares * (1 + gamma(d + 2)) + underflow(d) <= set.radius ** 2 * (1 - gamma(4));
}

/** Groups of classes with equal rows: tied with one of equal bias, or dominated by one of larger bias; both as maps class -> other. */
export function findTwins(layer) {
  const buckets = new Map();
  for (let i = 0; i < layer.classes; i++) {
    const bits = new Int32Array(rowOf(layer, i).map((value) => value + 0).buffer); // -0 becomes 0, which equals it
    let hash = 0;
    for (const word of bits) hash = (Math.imul(hash, 31) + word) | 0;
    const same = (buckets.get(hash) ?? []).find(([first]) => equalRows(layer, first, i));
    if (same) same.push(i);
    else buckets.set(hash, [...(buckets.get(hash) ?? []), [i]]);
  }
  const [tied, dominated] = [new Map(), new Map()];
  for (const group of [...buckets.values()].flat()) {
    if (group.length < 2) continue;
    const most = Math.max(...group.map((i) => layer.b[i]));
    const top = group.filter((i) => layer.b[i] === most);
    for (const i of group) if (layer.b[i] < most) dominated.set(i, top[0]);
    if (top.length > 1) for (const i of top) tied.set(i, i === top[0] ? top[1] : top[0]);
  }
  return { tied, dominated };
}

function equalRows({ W, d }, i, j) {
  for (let k = 0; k < d; k++) if (W[i * d + k] !== W[j * d + k]) return false;
  return true;
}

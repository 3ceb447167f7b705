// A layer behind a final normalisation: x = shift + gain u with ‖u‖ <= sqrt(d) and some for rounding, where LayerNorm takes the mean off u first (features/ellipsoid.py).
//
// The search runs over the ball of u, on rows gain w (centred) and biases b + w.shift. Those are rounded, so certificates of unargmaxability are about the rows as
// they are stored, which the layer keeps as `stated`, and what rounding did to the others is in the margins of points (`roundingAt`).

import { INFLATE, gamma, greatest, makeScanLayer, normUp, rowOf, underflow } from "./scan_layer.js";

const LOST = 2 ** -960; // more than all that products of such sizes lose below the normal range

/** The layer of W (C, d), b and {kind: "ellipsoid", gain, shift, radius, centred}. */
export function makeNormLayer(W, b, classes, d, set) {
  const stated = makeScanLayer(W, b, classes, d, { kind: "unbounded" });
  stated.set = { ...set, gain: set.gain.map((g) => g * stated.unit), shift: set.shift.map((c) => c * stated.unit) };
  const rows = new Float64Array(classes * d);
  const biases = new Float64Array(classes);
  for (let i = 0; i < classes; i++) {
    const [own, row] = [rowOf(stated, i), rows.subarray(i * d, (i + 1) * d)];
    biases[i] = stated.b[i];
    for (let k = 0; k < d; k++) {
      row[k] = stated.set.gain[k] * own[k];
      biases[i] += own[k] * stated.set.shift[k];
    }
    if (set.centred) centre(row);
  }
  return Object.assign(makeScanLayer(rows, biases, classes, d, { kind: "ball", radius: set.radius }), { stated });
}

const ROUNDOFF = { bfloat16: 2 ** -8, float16: 2 ** -11, float32: 2 ** -24, float64: 2 ** -53 };

/** The coarsest format that holds every number exactly. */
function formatOf(values) {
  if (!values.every((x) => Object.is(Math.fround(x), x))) return "float64";
  const single = new Uint32Array(Float32Array.from(values).buffer);
  if (single.every((bits) => !(bits & 0xffff))) return "bfloat16";
  const half = (x) => Math.abs(x) <= 65504 && Number.isInteger(x / 2 ** Math.max(Math.floor(Math.log2(Math.abs(x) || 1)) - 10, -24));
  return values.every(half) ? "float16" : "float32";
}

/** The radius that holds what a normalisation leaves when its numbers are rounded; the proof stands in features/ellipsoid.py (`rounded_radius`). */
export function roundedRadius(gain, shift) {
  const [d, rho] = [gain.length, ROUNDOFF[formatOf([...gain, ...shift])]];
  const sigma = Math.min(rho, ROUNDOFF.float32);
  const moved = Math.sqrt(gain.reduce((sum, g, k) => sum + (g ? (shift[k] / g) ** 2 : 0), 0));
  return Math.sqrt(d) * (1 + (d + 8) * sigma) * (1 + rho) ** 3 + rho * moved;
}

function centre(v) {
  const mean = v.reduce((sum, x) => sum + x, 0) / v.length;
  for (let k = 0; k < v.length; k++) v[k] -= mean;
}

/** An upper bound on what rounding did to any logit at z. */
export function roundingAt(layer, z) {
  const { d, stated } = layer;
  if (!stated) return gamma(d + 2) * (layer.norm * normUp(z) + layer.offset) * INFLATE + underflow(d + 2);
  const { gain, shift } = stated.set;
  const reach = normUp(shift) + (2 * greatest(gain) * normUp(z)) / layer.unit; // of |x|, before its mean is taken off
  return gamma(2 * d + 8) * (stated.norm * reach + stated.offset) * INFLATE + LOST;
}

/** max of v.x over the ellipsoid, for every v within the error: [bound, sum of sizes]; without an error, what v itself gives. */
export function ellipsoidSupport({ gain, shift, radius, centred }, v, error) {
  const d = v.length;
  const scaled = v.map((x, k) => gain[k] * x);
  const mean = scaled.reduce((sum, x) => sum + Math.abs(x), 0) / d;
  const slip = error && scaled.map((x, k) => Math.abs(gain[k]) * error[k] * INFLATE + gamma(d + 4) * (Math.abs(x) + mean) + underflow(3));
  if (centred) centre(scaled);
  const reach = radius * (normUp(scaled) + (error ? normUp(slip) : 0)) + underflow(1);
  let [most, along] = [reach + underflow(2 * d), reach + underflow(2 * d)];
  for (let k = 0; k < d; k++) {
    const off = error ? error[k] : 0;
    most += shift[k] * v[k] + Math.abs(shift[k]) * off;
    along += Math.abs(shift[k]) * (Math.abs(v[k]) + off);
  }
  return [most, along];
}

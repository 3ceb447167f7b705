// Exact signs of determinants of the entries of W and b: floating point where its error bound allows, integers where it does not.

export const ROUNDING = 1e-14; // a 3 x 3 determinant makes some ten roundings of 1.1e-16 of its size: this is far above them
export const TINY = 1e-280; // below it products lose digits or vanish, so that no bound holds: integers decide

/** turn(i, j, k): 1 when w_i, w_j, w_k turn left, -1 right, 0 on a line; each triple is decided once. */
export function orientations(layer) {
  const n = layer.classes;
  const table = new Int8Array(n * n * n);
  for (let i = 0; i < n; i++) {
    for (let j = i + 1; j < n; j++) {
      for (let k = j + 1; k < n; k++) {
        const s = sign(layer, [[j, i], [k, i]], [0, 1]);
        for (const [p, q, r] of [[i, j, k], [j, k, i], [k, i, j]]) {
          table[(p * n + q) * n + r] = s;
          table[(q * n + p) * n + r] = -s;
        }
      }
    }
  }
  return (i, j, k) => table[(i * n + j) * n + k];
}

/** Exact sign of the determinant whose rows are differences of lifted points, in two or three of their coordinates. */
export function sign(layer, pairs, columns) {
  const rows = pairs.map(([i, j]) => columns.map((k) => layer.points[i][k] - layer.points[j][k]));
  const [value, size] = [
    determinant(rows, -1),
    determinant(rows.map((row) => row.map(Math.abs)), 1),
  ];
  if (size > TINY && Math.abs(value) > ROUNDING * size) return Math.sign(value);
  const whole = layer.integers();
  const exact = determinant(pairs.map(([i, j]) => columns.map((k) => whole[i][k] - whole[j][k])), -1n);
  return exact > 0n ? 1 : exact < 0n ? -1 : 0;
}

/** A determinant of size two or three, for Numbers and BigInts alike; with minus = 1 of absolute values it bounds the rounding. */
export function determinant(rows, minus) {
  const two = (p, q, m, n) => p[m] * q[n] + minus * p[n] * q[m];
  if (rows.length === 2) return two(rows[0], rows[1], 0, 1);
  const [p, q, r] = rows;
  return p[0] * two(q, r, 1, 2) + minus * p[1] * two(q, r, 0, 2) + p[2] * two(q, r, 0, 1);
}

/** Every double is an integer times a power of two: all entries as integers over one such power. */
export function toIntegers(points) {
  const view = new DataView(new ArrayBuffer(8));
  const parts = points.map((point) =>
    point.map((value) => {
      view.setFloat64(0, value);
      const bits = view.getBigUint64(0);
      const exponent = Number((bits >> 52n) & 0x7ffn);
      const mantissa = (bits & 0xfffffffffffffn) | (exponent ? 0x10000000000000n : 0n);
      return [value < 0 ? -mantissa : mantissa, value === 0 ? Infinity : Math.max(exponent, 1)];
    }),
  );
  const least = Math.min(...parts.flat().map(([, exponent]) => exponent));
  return parts.map((point) => point.map(([m, e]) => (e === Infinity ? 0n : m << BigInt(e - least))));
}

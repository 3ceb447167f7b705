// One linear programme for many classes: the dual of a class's best margin over a box, with a basis that goes from class to class.
//
// Over rivals i that all classes share, minimise  -sum l_i b_i + sum (high v+_k - low v-_k)  subject to  sum l_i [w_i, 1] + [v+ - v-, 0] = [w_t, 1]
// with l, v+, v- >= 0. Another class is another right side: its predecessor's basis stays dual feasible, and the dual simplex method (Lemke 1954)
// mends it. A new rival is another column: the basis stays primal feasible, and the primal method mends it. A vertex has at most d + 1
// weights, and its value plus b_t is the best margin against these rivals.

import { greatest, times } from "./scan_layer.js";

const TOLERANCE = 1e-9; // weights above minus this count as non-negative
const PIVOT = 1e-6; // entries of a tableau row or column up to this fraction are rounding
const REFRESH = 100; // pivots after which the inverse is computed anew
const MOST_PIVOTS = 20; // per dimension, for one class: far more than most need; rows that are copies but for their last digits may use them up

export class Bases {
  /** No rivals yet, and no basis: `add` brings them. */
  constructor(d, low, high) {
    const n = d + 1;
    Object.assign(this, { d, n, low, high, age: 0, k: 0, names: [], place: new Map(), excluded: new Set() });
    this.columns = new Float64Array(64 * n); // (k, n) row by row: [w_i, 1]
    this.biases = new Float64Array(64);
    this.doubt = 1e-9 * Math.max(Math.abs(low), Math.abs(high)); // reduced costs above minus this count as non-negative: rows are of order one
  }

  /** Rivals that are not there yet, or were excluded, with their rows and biases; how many. */
  add(names, rowOfName, biasOf) {
    let fresh = 0;
    for (const name of names) {
      fresh += Number(this.excluded.delete(name) || !this.place.has(name));
      if (this.place.has(name)) continue;
      if ((this.k + 1) * this.n > this.columns.length) {
        [this.columns, this.biases] = [this.columns, this.biases].map((old) => {
          const larger = new Float64Array(2 * old.length);
          larger.set(old);
          return larger;
        });
      }
      this.columns.set(rowOfName(name), this.k * this.n);
      this.columns[this.k * this.n + this.d] = 1;
      this.biases[this.k] = biasOf(name);
      this.place.set(name, this.k++);
      this.names.push(name);
    }
    if (fresh) this.basic ? this.price() : this.startAtCorner();
    return fresh;
  }

  /** The corner of the box that is nearest to the origin, and the rival that wins there: dual feasible. */
  startAtCorner() {
    const { d, n, k, low, high } = this;
    const upper = Math.abs(high) <= Math.abs(low);
    const corner = upper ? high : low;
    const at = times(this.columns, new Float64Array(n).fill(corner, 0, d), k).map((logit, j) => logit + this.biases[j]);
    const winner = at.indexOf(at.reduce((most, logit) => Math.max(most, logit)));
    // Variables 0 .. d-1 are v+, d .. 2d-1 are v-, then come the rivals.
    this.basic = Int32Array.from({ length: n }, (_, i) => (i === d ? 2 * d + winner : i + (upper ? 0 : d)));
    this.refresh();
  }

  /** What `restore` needs to forget all that came after. */
  state() {
    return [this.inverse.slice(), this.basic.slice(), this.age, this.k, new Set(this.excluded)];
  }

  restore([inverse, basic, age, k, excluded]) {
    for (const name of this.names.splice(k)) this.place.delete(name);
    Object.assign(this, { inverse, basic, age, k, excluded });
    this.price();
  }

  /**
   * The vertex of a class with row `own`, itself never among its rivals: {value, rivals, weights, z}, the margin `value` taken at the point z of
   * the box. Unless the `best` margin is wanted, a class that beats all rivals is left at the first such point: the dual's value only grows.
   * null when rounding or cycling stops the method.
   */
  solve(name, own, bias, best = true) {
    if (this.place.has(name)) this.excluded.add(name);
    const target = this.rightSide(own);
    for (let pivots = 0; pivots < MOST_PIVOTS * this.n; pivots++) {
      const x = this.apply(target);
      let [r, sign] = this.leavingByDual(x);
      let q = r < 0 ? this.enteringByPrimal() : this.enteringByDual(r, sign);
      const value = this.valueAt(x) + bias;
      const beats = !best && value > this.doubt && !this.isExcluded(this.basic[Math.max(r, 0)]);
      if (beats || (r < 0 && q < 0)) return { ...this.sharpened(x, target), value, z: this.dual().slice(0, this.d) };
      if (q < 0) return null;
      const direction = this.apply(this.column(q));
      if (r < 0) r = this.leavingByPrimal(x, direction);
      else if (!(sign * direction[r] < 0)) return null; // the price was rounding after all
      if (r < 0) return null;
      this.pivot(r, q, direction);
    }
    return null;
  }

  /** {rivals, weights} that the current basis gives a class, when none is negative; else null. */
  covers(name, own) {
    const target = this.rightSide(own);
    const x = this.apply(target);
    const itself = this.place.has(name) && this.basic.includes(2 * this.d + this.place.get(name));
    return !itself && x.every((value) => value >= -TOLERANCE) ? this.sharpened(x, target) : null;
  }

  rightSide(own) {
    return Float64Array.from({ length: this.n }, (_, i) => (i < this.d ? own[i] : 1));
  }

  cost(j) {
    return j < this.d ? this.high : j < 2 * this.d ? -this.low : -this.biases[j - 2 * this.d];
  }

  valueAt(x) {
    return this.basic.reduce((sum, j, i) => sum + this.cost(j) * x[i], 0);
  }

  isExcluded(j) {
    return j >= 2 * this.d && this.excluded.size > 0 && this.excluded.has(this.names[j - 2 * this.d]);
  }

  /** inverse @ target. */
  apply(target) {
    return times(this.inverse, target, this.n);
  }

  /** The place that leaves, and the sign of its error: an excluded rival first, else by dual steepest edge; -1 when all is feasible. */
  leavingByDual(x) {
    const { n, inverse, basic } = this;
    if (this.excluded.size) for (let i = 0; i < n; i++) if (this.isExcluded(basic[i])) return [i, x[i] < 0 ? -1 : 1];
    let [r, most] = [-1, 0];
    for (let i = 0; i < n; i++) {
      if (x[i] >= -TOLERANCE) continue;
      let edge = 0;
      for (let j = 0, a = i * n; j < n; j++) edge += inverse[a + j] * inverse[a + j];
      if (x[i] ** 2 / edge > most) [r, most] = [i, x[i] ** 2 / edge];
    }
    return [r, 1];
  }

  /** Entries of the r-th row of the tableau, for every variable. */
  tableauRow(r) {
    const { n, d, k, columns } = this;
    const row = this.inverse.subarray(r * n, (r + 1) * n);
    const alpha = new Float64Array(2 * d + k);
    for (let i = 0; i < d; i++) {
      alpha[i] = row[i];
      alpha[d + i] = -row[i];
    }
    times(columns, row, k, alpha.subarray(2 * d));
    this.alpha = alpha;
    return alpha;
  }

  /** The first variable whose reduced cost would turn negative; -1 when there is none. */
  enteringByDual(r, sign) {
    const { n, reduced, inBasis } = this;
    const alpha = this.tableauRow(r);
    const size = greatest(this.inverse.subarray(r * n, (r + 1) * n));
    const able = (j) => sign * alpha[j] < -PIVOT * size && !inBasis[j] && !this.isExcluded(j);
    let least = Infinity;
    for (let j = 0; j < alpha.length; j++) if (able(j)) least = Math.min(least, Math.max(reduced[j], 0) / Math.abs(alpha[j]));
    let q = -1;
    for (let j = 0; j < alpha.length; j++) {
      const ratio = Math.max(reduced[j], 0) / Math.abs(alpha[j]);
      if (ratio <= least * (1 + 1e-9) + 1e-300 && able(j) && (q < 0 || Math.abs(alpha[j]) > Math.abs(alpha[q]))) q = j;
    }
    return q;
  }

  /** The variable with the most negative reduced cost; -1 when none is. */
  enteringByPrimal() {
    let [q, least] = [-1, -this.doubt];
    for (let j = 0; j < this.reduced.length; j++)
      if (this.reduced[j] < least && !this.inBasis[j] && !this.isExcluded(j)) [q, least] = [j, this.reduced[j]];
    return q;
  }

  /** The first basic variable that would turn negative. */
  leavingByPrimal(x, direction) {
    const size = greatest(direction);
    let [r, least] = [-1, Infinity];
    for (let i = 0; i < this.n; i++) {
      if (direction[i] <= PIVOT * size) continue;
      const ratio = Math.max(x[i], 0) / direction[i];
      if (ratio < least || (ratio === least && direction[i] > direction[r])) [r, least] = [i, ratio];
    }
    if (r >= 0) this.tableauRow(r);
    return r;
  }

  /** Variable q takes the r-th place in the basis; `alpha` is that row of the tableau. */
  pivot(r, q, direction) {
    const { n, inverse, reduced, basic, alpha, inBasis } = this;
    const change = reduced[q] / alpha[q];
    for (let j = 0; j < alpha.length; j++) reduced[j] -= change * alpha[j];
    [reduced[basic[r]], reduced[q]] = [-change, 0];
    const row = inverse.slice(r * n, (r + 1) * n);
    for (let i = 0; i < n; i++) {
      const factor = i === r ? 1 - 1 / direction[r] : direction[i] / direction[r];
      if (factor !== 0) for (let j = 0, a = i * n; j < n; j++) inverse[a + j] -= factor * row[j];
    }
    [inBasis[basic[r]], inBasis[q]] = [0, 1];
    basic[r] = q;
    if (++this.age >= REFRESH) this.refresh();
  }

  /** Weights after two steps of refinement: the inverse has been updated many times. */
  sharpened(x, target) {
    const { n, d, basic } = this;
    for (let pass = 0; pass < 2; pass++) {
      const residual = target.slice();
      for (let i = 0; i < n; i++) {
        const j = basic[i];
        if (j < 2 * d) residual[j % d] -= j < d ? x[i] : -x[i];
        else for (let c = 0, a = (j - 2 * d) * n; c < n; c++) residual[c] -= x[i] * this.columns[a + c];
      }
      const correction = this.apply(residual);
      x = x.map((value, i) => value + correction[i]);
    }
    const kept = [...basic.keys()].filter((i) => basic[i] >= 2 * d && x[i] > 0);
    return { rivals: kept.map((i) => this.names[basic[i] - 2 * d]), weights: kept.map((i) => x[i]) };
  }

  /** The prices of the equations: the point at which the margin is taken, and the best rival's logit there. */
  dual() {
    const { n } = this;
    const z = new Float64Array(n);
    for (let i = 0; i < n; i++) {
      const cost = this.cost(this.basic[i]);
      for (let j = 0, a = i * n; j < n; j++) z[j] += cost * this.inverse[a + j];
    }
    return z;
  }

  column(j) {
    const { n, d } = this;
    if (j >= 2 * d) return this.columns.subarray((j - 2 * d) * n, (j - 2 * d + 1) * n);
    const unit = new Float64Array(n);
    unit[j % d] = j < d ? 1 : -1;
    return unit;
  }

  refresh() {
    const { n } = this;
    const M = new Float64Array(n * n);
    this.basic.forEach((j, i) => this.column(j).forEach((value, c) => (M[c * n + i] = value)));
    this.inverse = inverseOf(M, n) ?? this.inverse; // a basis that rounding made singular goes on with the inverse that it has
    this.age = 0;
    this.price();
  }

  /** Reduced costs of all variables. */
  price() {
    const { n, d, k } = this;
    const z = this.dual();
    this.reduced = Float64Array.from({ length: 2 * d + k }, (_, j) => this.cost(j));
    for (let i = 0; i < d; i++) {
      this.reduced[i] -= z[i];
      this.reduced[d + i] += z[i];
    }
    times(this.columns, z, k).forEach((logit, j) => (this.reduced[2 * d + j] -= logit));
    this.inBasis = new Uint8Array(2 * d + k);
    for (const j of this.basic) {
      this.reduced[j] = 0;
      this.inBasis[j] = 1;
    }
  }
}

/** The inverse of M (n, n) by Gauss and Jordan in one array, rows changing places for the largest pivot; null when a pivot vanishes. */
export function inverseOf(M, n) {
  const A = M.slice();
  const swapped = [];
  for (let k = 0; k < n; k++) {
    let p = k;
    for (let i = k + 1; i < n; i++) if (Math.abs(A[i * n + k]) > Math.abs(A[p * n + k])) p = i;
    const pivot = A[p * n + k];
    if (!pivot) return null;
    swapped.push(p);
    const row = A.slice(p * n, (p + 1) * n);
    A.copyWithin(p * n, k * n, (k + 1) * n);
    row[k] = 1; // the unit column that elimination leaves here gives its place to a column of the inverse
    for (let j = 0; j < n; j++) A[k * n + j] = row[j] /= pivot;
    for (let i = 0; i < n; i++) {
      const factor = A[i * n + k];
      if (i === k || !factor) continue;
      A[i * n + k] = 0;
      for (let j = 0, a = i * n; j < n; j++) A[a + j] -= factor * row[j];
    }
  }
  for (let k = n - 1; k >= 0; k--) // what rows changed, columns change back
    for (let a = 0, p = swapped[k]; a < n * n; a += n) [A[a + k], A[a + p]] = [A[a + p], A[a + k]];
  return A;
}

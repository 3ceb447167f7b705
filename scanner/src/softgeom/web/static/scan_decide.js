// What the search leaves open, decided class after class by cutting planes: solve against some rivals, look at everybody, add the strongest.
//
// Weights that prove a class unargmaxable against few rivals prove it for good. Such classes of one layer share most of their blocking classes, and one basis often serves
// many: it is tried on the next class first.

import { Bases } from "./scan_bases.js";
import { certifyBlocking } from "./scan_blocking.js";
import { boxAround, exponent, findTwins, greatest, project, rowOf } from "./scan_layer.js";
import { certifiedMargin, climb, firstLook, look } from "./scan_search.js";

const CUTS = 40; // rounds for one class
const STRONGEST = 64; // rivals that join in each
const TRIED = 8; // classes near the middle: the first may be able to win
const COPY = 1e-6; // of a row's length: a rival no farther away is a copy but for its last digits, between which no shared basis can tell
const WORTH = 0.3; // share of climbers that a round must bring to the top: proofs are cheap
const WON = Symbol("won");
const SECONDS = 20; // for one class; then it stays undecided, and the page says so

/**
 * Verdicts on all classes of a layer, as a generator that yields {stage, done, of} and returns the findings in the order of the classes:
 * {t, verdict, method, steps, margin} with z (argmaxable), rivals and weights (unargmaxable), twin (tied).
 */
export function* scanLayer(layer, now = () => Date.now()) {
  const findings = new Map();
  const prove = (t, rivals, weights, method) => {
    const [kept, scaled, bound] = proven(layer, t, rivals, weights) ?? [];
    if (kept) findings.set(t, { t, verdict: "unargmaxable", method, steps: 0, margin: bound, rivals: kept, weights: scaled });
    return Boolean(kept);
  };
  const won = (method) => (t, z, margin, steps = 0) => {
    findings.set(t, { t, verdict: "argmaxable", method: method ?? (steps ? "ascent" : "look"), steps, margin, z });
  };
  const { tied, dominated } = findTwins(layer.stated ?? layer);
  for (const [t, twin] of tied) findings.set(t, { t, verdict: "tied", method: "twin", steps: 0, margin: 0, twin });
  for (const [t, better] of dominated) prove(t, [better], [1], "twin");
  const asked = Array.from({ length: layer.classes }, (_, t) => t).filter((t) => !findings.has(t));
  const lost = yield* staged(firstLook(layer, asked, won()), (done) => ({ stage: "looking", done, of: asked.length }));
  const climbing = ({ round, done, of }) => ({ stage: `climbing, round ${round + 1}`, done, of });
  const open = yield* staged(climb(layer, lost, won(), { worth: WORTH }), climbing);
  const bases = new Bases(layer.d, ...boxAround(layer));
  const beating = yield* alongNeighbours(layer, open, bases, prove, won("cuts"), now);
  const left = yield* staged(climb(layer, beating, won(), { first: 40, count: 64 }), climbing);
  yield* oneByOne(layer, left, bases, prove, won("cuts"), now);
  return Array.from({ length: layer.classes }, (_, t) => findings.get(t) ?? { t, verdict: "undecided", method: "", steps: 0, margin: Infinity });
}

function* staged(steps, say) {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
    yield say(value);
  }
}

/** Classes that never win against rivals that their neighbours share, each from its neighbour's basis; those that beat these rivals come back. */
function* alongNeighbours(layer, open, bases, prove, won, now) {
  const beating = [];
  let proofs = 0;
  for (const [n, one] of nearestFirst(layer, open).entries()) {
    if (n >= TRIED && !proofs) {
      beating.push({ ...one, stuck: 0 }); // unargmaxable classes here are few, or not alike
      continue;
    }
    yield { stage: "proving", done: n, of: open.length };
    const [t, own] = [one.t, rowOf(layer, one.t)];
    const found = bases.basic ? (bases.covers(t, own) ?? bases.solve(t, own, layer.b[t], false)) : cut(layer, one, bases, won, now);
    if (found === WON) continue;
    if (found && !(found.value > bases.doubt) && prove(t, found.rivals, found.weights, "basis")) proofs++;
    else beating.push({ ...one, stuck: 0 });
  }
  return beating;
}

/** Cutting planes for each class that nothing else has decided. */
function* oneByOne(layer, left, bases, prove, won, now) {
  for (const [n, one] of left.entries()) {
    yield { stage: "cutting", done: n, of: left.length };
    const before = bases.basic && bases.state();
    const decided = (ended) => ended === WON || (ended && prove(one.t, ended.rivals, ended.weights, "cuts"));
    const ended = cut(layer, one, bases, won, now);
    const done = decided(ended);
    if (before && (ended === WON || !done)) bases.restore(before); // only unargmaxable classes leave their basis to others
    if (!done) decided(cut(layer, one, new Bases(layer.d, ...boxAround(layer)), won, now, true));
  }
}

/**
 * Cutting planes for one class: it wins at a point (WON, and `won` has heard), ends with weights to be tried, or with nothing (null). In a basis of
 * its `own` it stands at the origin and its rivals are measured by their distance: copies but for their last digits are rows of order one there.
 */
function cut(layer, one, bases, won, now, own = false) {
  const { t } = one;
  const [row, bias, Y] = [rowOf(layer, t), layer.b[t], new Float64Array(layer.classes)];
  const away = (i) => rowOf(layer, i).map((x, k) => x - row[k]);
  const size = (i) => (own ? 2 ** exponent(greatest(away(i))) : 1);
  const rowFor = (i) => (own ? away(i).map((x) => x / size(i)) : rowOf(layer, i));
  const biasFor = (i) => (own ? (layer.b[i] - bias) / size(i) : layer.b[i]);
  const add = (names) => bases.add([...names].filter((i) => i !== t && greatest(away(i)) > (own ? 0 : COPY * layer.norms[t])), rowFor, biasFor);
  if (!bases.basic && !add([...one.rivals, ...look(layer, t, one.z, Y, 4 * layer.d).strongest])) return null;
  const end = now() + 1000 * SECONDS;
  for (let round = 0; round < CUTS && now() < end; round++) {
    const vertex = own ? bases.solve(t, new Float64Array(layer.d), 0) : bases.solve(t, row, bias);
    if (!vertex) return null;
    vertex.weights = vertex.weights.map((w, n) => w / size(vertex.rivals[n]));
    if (vertex.value <= bases.doubt && (vertex.value <= 0 || proven(layer, t, vertex.rivals, vertex.weights))) return vertex;
    const z = project(layer, vertex.z);
    const seen = look(layer, t, z, Y, STRONGEST);
    const bound = certifiedMargin(layer, z, seen.margin);
    if (bound > 0) {
      won(t, z, bound);
      return WON;
    }
    if (!add(seen.strongest)) return null;
  }
  return null;
}

/** [rivals, weights, bound] when they prove t unargmaxable: as they are, or rounded to few digits, which ties need. */
function proven(layer, t, rivals, weights) {
  const snapped = weights.map((w) => Math.round(w * 2 ** 30) / 2 ** 30);
  for (const tried of [weights, snapped]) {
    const kept = [...tried.keys()].filter((n) => tried[n] > 0 && rivals[n] !== t);
    if (!kept.length) continue;
    const unit = 2 ** exponent(Math.max(...kept.map((n) => tried[n])));
    const [names, scaled] = [kept.map((n) => rivals[n]), kept.map((n) => tried[n] / unit)];
    const bound = certifyBlocking(layer, t, names, scaled);
    if (bound <= 0) return [names, scaled, bound];
  }
  return null;
}

/** Classes in the order of their rows' distance from the median row of them all: alike come together. */
function nearestFirst(layer, open) {
  const centre = Float64Array.from({ length: layer.d }, (_, k) => {
    const values = Float64Array.from(open, ({ t }) => layer.W[t * layer.d + k]).sort();
    return values[values.length >> 1];
  });
  const distance = new Map(open.map((one) => [one, rowOf(layer, one.t).reduce((sum, x, k) => sum + (x - centre[k]) ** 2, 0)]));
  return [...open].sort((p, q) => distance.get(p) - distance.get(q));
}

// The worker of the page that scans: it reads, searches, proves and writes, and tells the page how far it is. Nothing leaves it but messages.

import { scanLayer } from "./scan_decide.js";
import { openWeights, parseLabels, readLayer, readVector, storedTokens } from "./scan_files.js";
import { headOf } from "./scan_heads.js";
import { makeScanLayer } from "./scan_layer.js";
import { makeNormLayer, roundedRadius } from "./scan_norm.js";
import { layerOf, proofsOf } from "./scan_proofs.js";

const NAMED = 6; // blocking classes of a class that the table lists
const BREATH = 100; // milliseconds between two words of progress

let arrays = null;
let behind = ""; // what stands between the scores and the model's answer
let last = null; // what the folder is made of

/** What the page may ask; each answer is one message. */
export const answers = {
  async open({ file, table }) {
    arrays = await openWeights(file);
    const head = headOf(arrays, file.name, table);
    behind = head.behind;
    return { kind: "opened", file: file.name, ...head };
  },

  async scan({ choice, set: asked, labels, blank, file }) {
    const read = await readLayer(arrays, choice);
    const set = asked.kind === "norm" ? await ellipsoid(asked, read.d) : asked;
    const tokens = labels ? parseLabels(await labels.text(), read.classes, labels.name, blank) : await storedTokens(arrays, read.classes);
    const make = set.kind === "ellipsoid" ? makeNormLayer : makeScanLayer;
    const layer = make(read.W, read.b, read.classes, read.d, set);
    const begun = performance.now();
    const findings = run(scanLayer(layer));
    const seconds = (performance.now() - begun) / 1000;
    last = { layer, findings, stored: read.stored, set, tokens };
    return { kind: "scanned", seconds, behind, ...summaryOf(layer, findings, tokens, !behind) };
  },

  async proofs() {
    return { kind: "file", name: "evidence.safetensors", bytes: await proofsOf(last) };
  },

  async layerFile() {
    const { W, b } = last.stored;
    return { kind: "file", name: "layer.safetensors", bytes: layerOf({ W, b }) };
  },
};

/** What leaves a normalisation of d features whose gain and shift are arrays of the file, or ones and zeros where none is named. */
async function ellipsoid({ centred, gain, shift }, d) {
  const [g, c] = [gain ? await readVector(arrays, gain, d) : new Float64Array(d).fill(1), shift ? await readVector(arrays, shift, d) : new Float64Array(d)];
  return { kind: "ellipsoid", gain: g, shift: c, radius: roundedRadius(g, c), centred };
}

function run(steps) {
  let told = 0;
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
    const now = performance.now();
    if (now - told > BREATH) {
      told = now;
      globalThis.postMessage?.({ kind: "progress", ...value });
    }
  }
}

/** Counts, a row of the table for each class that does not win, and every class by its name and whether it is lost; ceilings where the model's
 * answer is a plain softmax of the scores. */
export function summaryOf(layer, findings, tokens, plain = true) {
  const name = (t) => (tokens ? tokens[t] : String(t));
  const counts = { argmaxable: 0, unargmaxable: 0, tied: 0, undecided: 0 };
  for (const { verdict } of findings) counts[verdict]++;
  const lost = findings
    .filter(({ verdict }) => verdict !== "argmaxable")
    .map((one) => ({ t: one.t, token: name(one.t), verdict: one.verdict, margin: one.margin, ceiling: plain ? ceilingOf(one) : null, blocking: blockingOf(one, name), of: one.rivals?.length ?? 0 }));
  return { counts, lost, classes: layer.classes, features: layer.d, named: tokens !== null, wall: findings.map(({ t, verdict }) => [name(t), verdict !== "argmaxable"]) };
}

/** What the probability of a class stays below at every input: its blocking classes' weights l prove 1 / (1 + exp(H(l) - margin)), H their entropy in nats
 * (Jensen; softgeom/ceiling/bound.py). Other weights may prove less. */
export function ceilingOf({ verdict, weights, margin }) {
  if (verdict !== "unargmaxable") return verdict === "tied" ? 1 / 2 : null;
  const total = weights.reduce((sum, w) => sum + w, 0);
  const entropy = weights.reduce((sum, w) => sum - (w / total) * Math.log(w / total), 0);
  return 1 / (1 + Math.exp(entropy - margin));
}

function blockingOf({ rivals, weights, twin }, name) {
  if (twin !== undefined) return [{ token: name(twin), share: 1 }];
  if (!rivals) return [];
  const total = weights.reduce((sum, w) => sum + w, 0);
  const order = [...rivals.keys()].sort((p, q) => weights[q] - weights[p]).slice(0, NAMED);
  return order.map((n) => ({ token: name(rivals[n]), share: weights[n] / total }));
}

if (typeof WorkerGlobalScope !== "undefined")
  globalThis.onmessage = async ({ data }) => {
    try {
      const answer = await answers[data.ask](data);
      postMessage(answer, answer.bytes ? [answer.bytes.buffer] : []);
    } catch (error) {
      postMessage({ kind: "problem", text: error.message || String(error) });
    }
  };

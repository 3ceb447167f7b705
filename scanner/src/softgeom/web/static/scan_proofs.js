// The scan as one file of proofs, evidence.safetensors: what `softgeom scan` writes and `softgeom verify` reads (docs/certificates.md).

import { INFLATE } from "./scan_layer.js";

const KINDS = { argmaxable: 1, unargmaxable: 2, tied: 3 };
const WIDTHS = { F64: 8, I64: 8, F32: 4, F16: 2, I8: 1, U8: 1 };
const text = (string) => new TextEncoder().encode(string);
const longs = (values) => ["I64", [values.length], BigInt64Array.from(values, BigInt)];
const doubles = (values) => ["F64", [values.length], Float64Array.from(values)];
const bytes = (values) => ["I8", [values.length], Int8Array.from(values)];
const list = (strings) => ["U8", [text(pythonJson(strings)).length], text(pythonJson(strings))];

/**
 * The file. `findings` are those of scanLayer in the order of the classes; the undecided ones are left out. `stored` is {W, b}: {shape, dtype, bytes}
 * as the file has them; `set` in the reader's units; `tokens` one string a class or null.
 */
export async function proofsOf({ layer, findings, stored, set, tokens }) {
  const decided = findings.filter(({ verdict }) => verdict in KINDS);
  const identity = { W: await digestOf(stored.W), b: stored.b ? await digestOf(stored.b) : null };
  const { norms, norm, unit } = layer.stated ?? layer; // a radius is about x
  const winners = decided.filter(({ verdict }) => verdict === "argmaxable");
  const points = new Float64Array(winners.length * layer.d);
  winners.forEach(({ z }, n) => z.forEach((value, k) => (points[n * layer.d + k] = value / layer.unit)));
  const proofs = decided.filter(({ verdict }) => verdict !== "argmaxable");
  const pairs = proofs.map((f) => (f.verdict === "tied" ? [[f.twin]] : inOrder(f)));
  const weights = pairs.flatMap((proof, n) => (proofs[n].verdict === "tied" ? [] : proof.map(([, weight]) => weight)));
  const [ones, zeros] = [decided.map(() => 1), decided.map(() => 0)];
  const arrays = {
    ...{ sets: longs(zeros), blocks: longs(ones), rest: bytes(ones), sizes: longs(ones), named: longs(decided.map(({ t }) => t)) },
    kinds: bytes(decided.map(({ verdict }) => KINDS[verdict])),
    steps: longs(decided.map(({ steps }) => steps)),
    margins: doubles(decided.map(({ margin }) => margin)),
    radii: doubles(decided.map((f) => (f.verdict === "argmaxable" ? f.margin / ((norms[f.t] + norm) * INFLATE) / unit : NaN))),
    points32: ["F32", [0, layer.d], new Float32Array(0)],
    points64: ["F64", [winners.length, layer.d], points],
    at: longs(winners.map((_, n) => n)),
    counts: longs(pairs.map((proof) => proof.length)),
    above: longs(pairs.flatMap((proof, n) => proof.map(() => proofs[n].t))),
    below: longs(pairs.flatMap((proof) => proof.map(([rival]) => rival))),
    weights: doubles(weights),
    ...{ ceilings: doubles([]), reached: doubles([]), fractions: list([]), reasons: list([]) },
    methods: list(decided.map(({ method }) => method)),
    tokens: list(tokens ?? []),
  };
  const fingerprint = await sha256(text(pythonJson(identity)));
  return container({ format: "softgeom proofs 5", holds: "scan", layer: fingerprint, features: pythonJson([fieldsOf(set)]) }, arrays);
}

/** W and b as they are stored, for the exact checker. */
export function layerOf(stored) {
  const kinds = { "<f8": "F64", "<f4": "F32", "<f2": "F16" };
  const there = Object.entries(stored).filter(([, array]) => array);
  return container({}, Object.fromEntries(there.map(([name, array]) => [name, [kinds[array.dtype], array.shape, array.bytes]])));
}

/** Texts and arrays {name: [dtype, shape, numbers]} in the layout of safetensors: the length of the header, JSON, the numbers, large items first. */
function container(texts, arrays) {
  const names = Object.keys(arrays).sort((a, b) => WIDTHS[arrays[b][0]] - WIDTHS[arrays[a][0]] || (a < b ? -1 : 1));
  const header = { __metadata__: texts };
  let place = 0;
  for (const name of names) {
    const [dtype, shape, values] = arrays[name];
    header[name] = { dtype, shape, data_offsets: [place, (place += values.byteLength)] };
  }
  const plain = text(pythonJson(header, ",", ":"));
  const filled = new Uint8Array(Math.ceil(plain.length / 8) * 8).fill(32);
  filled.set(plain);
  const all = new Uint8Array(8 + filled.length + place);
  new DataView(all.buffer).setBigUint64(0, BigInt(filled.length), true);
  all.set(filled, 8);
  for (const name of names) {
    const { buffer, byteOffset, byteLength } = arrays[name][2];
    all.set(new Uint8Array(buffer, byteOffset, byteLength), 8 + filled.length + header[name].data_offsets[0]);
  }
  return all;
}

/** Rivals in increasing order, each with its weight; none without. */
function inOrder({ rivals, weights }) {
  return Array.from(rivals, (rival, n) => [rival, weights[n]])
    .filter(([, weight]) => weight > 0)
    .sort(([a], [b]) => a - b);
}

async function sha256(content) {
  if (!globalThis.crypto?.subtle) throw new Error("This browser computes SHA-256 only on secure pages: open this one over https, or from a file.");
  const digest = await crypto.subtle.digest("SHA-256", content);
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

const digestOf = async ({ shape, dtype, bytes }) => ({ shape, dtype, sha256: await sha256(bytes) });

/** JSON as Python's json.dumps(value, sort_keys=True) writes it; floats do not occur. */
export function pythonJson(value, comma = ", ", colon = ": ") {
  const inner = (each) => pythonJson(each, comma, colon);
  if (Array.isArray(value)) return `[${value.map(inner).join(comma)}]`;
  if (value !== null && typeof value === "object") {
    const fields = Object.keys(value).sort();
    return `{${fields.map((key) => inner(key) + colon + inner(value[key])).join(comma)}}`;
  }
  return JSON.stringify(value).replace(/[\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** A float as Python's float.hex writes it. */
export function hexFloat(x) {
  if (x === 0) return Object.is(x, -0) ? "-0x0.0p+0" : "0x0.0p+0";
  const bits = new BigUint64Array(Float64Array.of(Math.abs(x)).buffer)[0];
  const exponent = Number(bits >> 52n);
  const power = Math.max(exponent, 1) - 1023;
  return `${x < 0 ? "-" : ""}0x${exponent ? 1 : 0}.${(bits & 0xfffffffffffffn).toString(16).padStart(13, "0")}p${power < 0 ? "-" : "+"}${Math.abs(power)}`;
}

/** The feature set's numbers as JSON has them. */
function fieldsOf(set) {
  if (set.kind !== "ellipsoid") return Object.fromEntries(Object.entries(set).map(([name, value]) => (name === "kind" ? ["set", value] : [name, hexFloat(value)])));
  const [gain, bias] = [set.gain, set.shift].map((values) => Array.from(values, hexFloat));
  return { set: "ellipsoid", gain, bias, radius: hexFloat(set.radius), centred: set.centred };
}

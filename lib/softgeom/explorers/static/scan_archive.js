// The folder that `softgeom scan` writes, as one zip: verdicts.csv, evidence.npz and summary.json, bound by SHA-256 (docs/certificates.md).

import { INFLATE } from "./scan_layer.js";

const KINDS = { argmaxable: 1, unargmaxable: 2, tied: 3 };
const text = (string) => new TextEncoder().encode(string);

/**
 * The zip. `findings` are those of scanLayer in the order of the classes; the undecided ones are left out of all three files and named in the
 * summary. `stored` is {W, b}: {shape, dtype, bytes} as the file has them; `set` in the reader's units; `tokens` one string a class or null.
 */
export async function scanFolder({ layer, findings, stored, set, tokens, about }) {
  const decided = findings.filter(({ verdict }) => verdict in KINDS);
  const identity = { W: await digestOf(stored.W), b: stored.b ? await digestOf(stored.b) : null };
  const { norms, norm, unit } = layer.stated ?? layer; // a radius is about x
  const radii = decided.map((f) => (f.verdict === "argmaxable" ? f.margin / ((norms[f.t] + norm) * INFLATE) / unit : NaN));
  const evidence = zip(await evidenceFiles(layer, decided, radii, identity, set));
  const table = text(verdictTable(decided, radii, tokens));
  const counts = { argmaxable: 0, tied: 0, unargmaxable: 0, undecided: 0 };
  for (const { verdict } of decided) counts[verdict]++;
  const summary = {
    ...about,
    format: 4,
    left_out_as_undecided: findings.filter(({ verdict }) => !(verdict in KINDS)).map(({ t }) => t),
    layer: identity,
    classes: layer.classes,
    scope: { count: decided.length, sha256: await sha256(bytesOf(BigInt64Array.from(decided, ({ t }) => BigInt(t)))) },
    feature_set: await describe(set),
    counts,
    sha256: { "verdicts.csv": await sha256(table), "evidence.npz": await sha256(evidence) },
  };
  summary.digest = await sha256(text(pythonJson(summary)));
  return zip({ "scan/verdicts.csv": table, "scan/evidence.npz": evidence, "scan/summary.json": text(`${pythonJson(summary)}\n`) });
}

async function evidenceFiles(layer, decided, radii, identity, set) {
  const of = (verdict) => decided.filter((f) => f.verdict === verdict);
  const [winners, unargmaxable] = [of("argmaxable"), of("unargmaxable")];
  const points = new Float64Array(winners.length * layer.d);
  winners.forEach(({ z }, n) => z.forEach((value, k) => (points[n * layer.d + k] = value / layer.unit)));
  const head = {
    format: 4,
    holds: "scan",
    layer: identity,
    features: fieldsOf(set),
    methods: decided.map(({ method }) => method),
    reasons: [],
    exact_points: [],
    exact_weights: [],
    sections: [],
  };
  const proofs = unargmaxable.map(inOrder);
  const longs = (values) => npy("<i8", [values.length], BigInt64Array.from(values, BigInt));
  const doubles = (values) => npy("<f8", [values.length], Float64Array.from(values));
  const arrays = {
    head: headArray(pythonJson(head)),
    kinds: npy("|i1", [decided.length], Int8Array.from(decided, ({ verdict }) => KINDS[verdict])),
    steps: longs(decided.map(({ steps }) => steps)),
    margins: doubles(decided.map(({ margin }) => margin)),
    points32: npy("<f4", [0, layer.d], new Float32Array(0)),
    points64: npy("<f8", [winners.length, layer.d], points),
    counts: longs(proofs.map((proof) => proof.length)),
    below: longs(proofs.flatMap((proof) => proof.map(([rival]) => rival))),
    weights: doubles(proofs.flatMap((proof) => proof.map(([, weight]) => weight))),
    classes: longs(decided.map(({ t }) => t)),
    radii: doubles(radii),
    twins: longs(of("tied").map(({ twin }) => twin)),
  };
  return Object.fromEntries(Object.entries(arrays).map(([name, bytes]) => [`${name}.npy`, bytes]));
}

/** Rivals in increasing order, each with its weight; none without. */
function inOrder({ rivals, weights }) {
  return Array.from(rivals, (rival, n) => [rival, weights[n]])
    .filter(([, weight]) => weight > 0)
    .sort(([a], [b]) => a - b);
}

/** One string as NumPy stores it: no dimension, four bytes a character. */
function headArray(string) {
  const points = Uint32Array.from(string, (character) => character.codePointAt(0));
  return npy(`<U${points.length}`, [], points);
}

/** An .npy file of format 1.0: magic, a header padded to 64 bytes, the numbers. */
export function npy(descr, shape, values) {
  const tuple = shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(", ")})`;
  const said = `{'descr': '${descr}', 'fortran_order': False, 'shape': ${tuple}, }`;
  const header = said.padEnd(Math.ceil((said.length + 11) / 64) * 64 - 11) + "\n";
  const length = header.length;
  return joined([Uint8Array.from([0x93, 78, 85, 77, 80, 89, 1, 0, length & 255, length >> 8]), text(header), bytesOf(values)]);
}

export const bytesOf = (values) => new Uint8Array(values.buffer, values.byteOffset, values.byteLength);

function joined(parts) {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let place = 0;
  for (const part of parts) {
    all.set(part, place);
    place += part.length;
  }
  return all;
}

/** A zip of {name: bytes}, stored as they are. */
export function zip(files) {
  const [parts, directory] = [[], []];
  let offset = 0;
  for (const [name, content] of Object.entries(files)) {
    const label = text(name);
    const common = [[2, 20], [2, 0], [2, 0], [2, 0], [2, 0x21], [4, crc32(content)], [4, content.length], [4, content.length], [2, label.length], [2, 0]];
    parts.push(packed([[4, 0x04034b50], ...common]), label, content);
    directory.push(packed([[4, 0x02014b50], [2, 20], ...common, [2, 0], [2, 0], [2, 0], [4, 0], [4, offset]]), label);
    offset += 30 + label.length + content.length;
  }
  const listed = joined(directory);
  const count = Object.keys(files).length;
  const end = packed([[4, 0x06054b50], [2, 0], [2, 0], [2, count], [2, count], [4, listed.length], [4, offset], [2, 0]]);
  return joined([...parts, listed, end]);
}

/** Little-endian numbers of so many bytes each. */
function packed(fields) {
  const bytes = [];
  for (const [width, value] of fields) for (let k = 0; k < width; k++) bytes.push(Math.floor(value / 256 ** k) % 256);
  return Uint8Array.from(bytes);
}

let crcTable = null;
export function crc32(bytes) {
  crcTable ??= Uint32Array.from({ length: 256 }, (_, n) => {
    for (let k = 0; k < 8; k++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
    return n;
  });
  let crc = 0xffffffff;
  for (let i = 0; i < bytes.length; i++) crc = crcTable[(crc ^ bytes[i]) & 255] ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}

export async function sha256(bytes) {
  if (!globalThis.crypto?.subtle) throw new Error("This browser computes SHA-256 only on secure pages: open this one over https, or from a file.");
  const digest = await crypto.subtle.digest("SHA-256", bytes);
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

const digestOf = async ({ shape, dtype, bytes }) => ({ shape, dtype, sha256: await sha256(bytes) });

/** JSON as Python's json.dumps(value, sort_keys=True) writes it; floats do not occur. */
export function pythonJson(value) {
  if (Array.isArray(value)) return `[${value.map(pythonJson).join(", ")}]`;
  if (value !== null && typeof value === "object")
    return `{${Object.keys(value).sort().map((key) => `${pythonJson(key)}: ${pythonJson(value[key])}`).join(", ")}}`;
  const written = JSON.stringify(value);
  return written.replace(/[\u007f-\uffff]/g, (c) => (c === "\u007f" ? c : `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`));
}

/** A float as Python's repr writes it: the same shortest digits, another way with exponents. */
export function pythonFloat(x) {
  if (Number.isNaN(x)) return "nan";
  if (!Number.isFinite(x)) return x > 0 ? "inf" : "-inf";
  if (Object.is(x, -0)) return "-0.0";
  const [digits, power] = x.toExponential().split("e");
  const exponent = Number(power);
  if (x === 0 || (exponent >= -4 && exponent < 16)) {
    const plain = exponent < -6 || exponent >= 21 ? x.toFixed(0) : String(x);
    return plain.includes(".") ? plain : `${plain}.0`;
  }
  return `${digits}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
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

/** The feature set's name in tables and terminals. */
export async function describe(set) {
  if (set.kind === "unbounded") return "unbounded";
  if (set.kind === "ellipsoid") {
    const digest = await sha256(text(pythonJson(fieldsOf(set))));
    return `${set.centred ? "LayerNorm" : "RMSNorm"} ellipsoid of ${set.gain.length} features (${digest.slice(0, 12)})`;
  }
  const plain = (value) => pythonFloat(value).replace(/\.0$/, "");
  if (set.kind === "ball") return `||x|| <= ${plain(set.radius)}`;
  return set.low === -set.high ? `|x| <= ${plain(set.high)}` : `${plain(set.low)} <= x <= ${plain(set.high)}`;
}

function verdictTable(decided, radii, tokens) {
  const quoted = (string) => `"${string.replaceAll('"', '""')}"`;
  const number = (x) => (Number.isNaN(x) ? '""' : pythonFloat(x));
  const rows = decided.map((f, n) =>
    [f.t, quoted(escapeToken(tokens ? tokens[f.t] : String(f.t))), quoted(f.verdict), quoted(f.method), f.steps, number(f.margin), number(radii[n])].join(","),
  );
  return `${["class", "token", "verdict", "method", "steps", "margin", "radius"].map(quoted).join(",")}\n${rows.map((row) => `${row}\n`).join("")}`;
}

/** A token on one line, without control characters, and no formula to a spreadsheet. */
export function escapeToken(token) {
  const code = (c) => {
    const point = c.codePointAt(0);
    if (c === "\\") return "\\\\";
    const [mark, width] = point < 0x100 ? ["x", 2] : point < 0x10000 ? ["u", 4] : ["U", 8];
    return `\\${mark}${point.toString(16).padStart(width, "0")}`;
  };
  return [...token].map((c, n) => ((n === 0 && "=+-@＝＋－＠".includes(c)) || /[\\\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u.test(c) ? code(c) : c)).join("");
}

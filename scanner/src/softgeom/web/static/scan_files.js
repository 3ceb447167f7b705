// Files of weights that are dropped on a page: .npz, .safetensors, GGUF and ONNX; what cannot be read is said in one sentence.

import { halfToNumber, openGguf } from "./scan_gguf.js";
import { isTable } from "./scan_heads.js";
import { openOnnx } from "./scan_onnx.js";

export const MOST_CLASSES = 20000;
export const MOST_NUMBERS = 8e6; // entries of W: the points of all classes take as much again
const HEADER = 16384; // bytes in which an array's header must end
const FLOATS = { f2: Uint16Array, f4: Float32Array, f8: Float64Array };

/** The arrays of a file: [{name, shape, dtype, floats, read}], `read` giving bytes in the order of the rows; and what its format says of the head:
 * `head(table)`, {name, bias, transposed, why} or {why} alone, and `behind(table)`. */
export async function openWeights(file) {
  if (file.size === 0) throw new Error(`${file.name} is empty.`);
  const start = await bytesAt(file, 0, 8);
  if (start[0] === 0x50 && start[1] === 0x4b) return openNpz(file);
  if (String.fromCharCode(...start.subarray(0, 4)) === "GGUF") return openGguf(file);
  if (start[0] === 0x93) throw new Error(`${file.name} holds one unnamed array: write the layer with numpy.savez(path, W=W, b=b).`);
  return file.name.endsWith(".onnx") ? openOnnx(file) : openSafetensors(file);
}

const bytesAt = async (file, start, stop) => new Uint8Array(await file.slice(start, stop).arrayBuffer());

async function openSafetensors(file) {
  const no = `${file.name} is no .npz, .safetensors, .gguf or .onnx file; softgeom scan reads PyTorch's and others too.`;
  const length = file.size < 8 ? -1 : Number(new DataView((await bytesAt(file, 0, 8)).buffer).getBigUint64(0, true));
  if (!(length >= 2 && length <= 1e8)) throw new Error(no);
  if (file.size < 8 + length) throw new Error(`${file.name} ends inside its header: fetch the file again.`);
  let header;
  try {
    header = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(await bytesAt(file, 8, 8 + length)));
    if (header === null || typeof header !== "object") throw new Error(no);
  } catch {
    throw new Error(no);
  }
  const types = { F16: "<f2", F32: "<f4", F64: "<f8", BF16: "bf16" };
  return Object.entries(header)
    .filter(([name]) => name !== "__metadata__")
    .map(([name, about]) => {
      const [from, to] = about?.data_offsets ?? [];
      const shape = about?.shape;
      const dtype = types[about?.dtype] ?? String(about?.dtype);
      const whole = Array.isArray(shape) && [from, to, ...shape].every((n) => Number.isSafeInteger(n) && n >= 0);
      if (!whole || (dtype in SIZES && (to - from) !== count(shape) * SIZES[dtype]))
        throw new Error(`${file.name} has an impossible header: the place of ${JSON.stringify(name)} does not fit its shape.`);
      if (8 + length + to > file.size) throw new Error(`${file.name} ends before the tensor ${JSON.stringify(name)} does: fetch the file again.`);
      return { name, shape, dtype, floats: dtype in SIZES, read: () => bytesAt(file, 8 + length + from, 8 + length + to) };
    });
}

const SIZES = { "<f2": 2, "<f4": 4, "<f8": 8, ">f2": 2, ">f4": 4, ">f8": 8, bf16: 2 };
const count = (shape) => shape.reduce((product, n) => product * n, 1);

let crcTable = null;
function crc32(bytes) {
  crcTable ??= Uint32Array.from({ length: 256 }, (_, n) => {
    for (let k = 0; k < 8; k++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
    return n;
  });
  let crc = 0xffffffff;
  for (let i = 0; i < bytes.length; i++) crc = crcTable[(crc ^ bytes[i]) & 255] ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}

async function openNpz(file) {
  const damaged = (why) => new Error(`${file.name} is not a whole .npz file of numbers (${why}): write it with numpy.savez.`);
  const tail = await bytesAt(file, Math.max(0, file.size - 65557), file.size);
  let end = tail.length - 22;
  while (end >= 0 && !(tail[end] === 0x50 && tail[end + 1] === 0x4b && tail[end + 2] === 5 && tail[end + 3] === 6)) end--;
  if (end < 0) throw damaged("it is cut short, or no archive");
  const last = new DataView(tail.buffer, tail.byteOffset + end);
  const [entries, size, offset] = [last.getUint16(10, true), last.getUint32(12, true), last.getUint32(16, true)];
  if (offset === 0xffffffff || offset + size > file.size) throw damaged("it is cut short, or larger than 4 GB");
  const listed = await bytesAt(file, offset, offset + size);
  const view = new DataView(listed.buffer, listed.byteOffset);
  const arrays = [];
  for (let at = 0, n = 0; n < entries; n++) {
    if (at + 46 > size || view.getUint32(at, true) !== 0x02014b50) throw damaged("its directory is damaged");
    const [flags, method, crc] = [view.getUint16(at + 8, true), view.getUint16(at + 10, true), view.getUint32(at + 16, true)];
    const [packedSize, fullSize, local] = [view.getUint32(at + 20, true), view.getUint32(at + 24, true), view.getUint32(at + 42, true)];
    const [nameSize, extra, comment] = [28, 30, 32].map((k) => view.getUint16(at + k, true));
    const member = new TextDecoder().decode(listed.subarray(at + 46, at + 46 + nameSize));
    at += 46 + nameSize + extra + comment;
    const label = JSON.stringify(member);
    if (flags & 1) throw damaged(`${label} is encrypted`);
    if (method !== 0 && method !== 8) throw damaged(`${label} is compressed by a method that NumPy does not write`);
    if (fullSize === 0xffffffff || fullSize > 1040 * Math.max(packedSize, 1)) throw damaged(`${label} declares more than it can hold`);
    if (!member.endsWith(".npy")) throw damaged(`${label} is no array`);
    const front = await bytesAt(file, local, local + 30);
    if (front.length < 30 || new DataView(front.buffer).getUint32(0, true) !== 0x04034b50) throw damaged(`${label} is not where its directory says`);
    const [a, b] = [26, 28].map((k) => new DataView(front.buffer).getUint16(k, true));
    const from = local + 30 + a + b;
    const open = (most) => (method ? inflate(file.slice(from, from + packedSize), most, damaged) : bytesAt(file, from, from + Math.min(packedSize, most)));
    const about = npyHeader(await open(HEADER), damaged, label);
    if (about.floats && count(about.shape) * SIZES[about.dtype] !== fullSize - about.start) throw damaged(`${label} of shape (${about.shape}) cannot fill its bytes`);
    const read = async () => {
      const all = await open(fullSize);
      if (all.length !== fullSize || crc32(all) !== crc) throw damaged(`${label} is damaged: its checksum differs`);
      return all.slice(about.start);
    };
    arrays.push({ ...about, name: member.slice(0, -4), read });
  }
  return Object.assign(arrays, { head: ({ npz }) => npzHead(arrays, npz) });
}

/** The layer of an .npz file by the names of its kind; null where there is none of them. */
function npzHead(arrays, conventions) {
  const there = (name) => arrays.find((one) => one.name === name);
  const [name, transposed, bias] = conventions.find(([weight]) => there(weight)) ?? [];
  if (!name) return null;
  if (!isTable(there(name))) throw new Error(`${name} has shape (${there(name).shape.join(", ")}), not (classes, features).`);
  return { name, transposed, bias: there(bias) ? bias : null, why: "the layer's name in files of this kind" };
}

function npyHeader(bytes, damaged, label) {
  const magic = [0x93, 78, 85, 77, 80, 89].every((byte, n) => bytes[n] === byte);
  const wide = bytes[6] > 1;
  const length = wide ? bytes[8] + 256 * (bytes[9] + 256 * bytes[10]) : bytes[8] + 256 * bytes[9];
  const start = (wide ? 12 : 10) + length;
  if (!magic || start > bytes.length) throw damaged(`${label} is no array`);
  const said = new TextDecoder().decode(bytes.subarray(wide ? 12 : 10, start));
  const [, dtype] = /'descr':\s*'([^']*)'/.exec(said) ?? [];
  const [, order] = /'fortran_order':\s*(True|False)/.exec(said) ?? [];
  const [, shape] = /'shape':\s*\(([\d,\sL]*)\)/.exec(said) ?? [];
  if (dtype === undefined || order === undefined || shape === undefined) throw damaged(`${label} holds no plain numbers`);
  return { shape: (shape.match(/\d+/g) ?? []).map(Number), dtype, fortran: order === "True", floats: dtype in SIZES, start };
}

/** At most so many inflated bytes. */
async function inflate(blob, most, damaged) {
  const reader = blob.stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const all = new Uint8Array(most);
  let place = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      all.set(value.subarray(0, most - place), place);
      place += Math.min(value.length, most - place);
      if (place === most) {
        await reader.cancel();
        break;
      }
    }
  } catch {
    throw damaged("its compressed content is damaged");
  }
  return all.subarray(0, place);
}

/** The layer of a choice {weight, bias, transposed}: {W, b, classes, d, stored}, all numbers finite, within the caps of this page. */
export async function readLayer(arrays, { weight, bias, transposed }) {
  const [table, vector] = [weight, bias].map((name) => arrays.find((one) => one.name === name));
  const [classes, d] = transposed ? [table.shape[1], table.shape[0]] : table.shape;
  if (classes > MOST_CLASSES || classes * d > MOST_NUMBERS)
    throw new Error(`${weight} has ${classes} classes x ${d} features; this page takes up to ${MOST_CLASSES} classes and ${MOST_NUMBERS / 1e6} million numbers: softgeom scan has no such limit.`);
  if (vector && vector.shape.at(-1) !== classes)
    throw new Error(`${bias} has ${vector.shape.at(-1)} entries for ${classes} classes: choose another bias, or none.`);
  const [W, b] = [await numbers(table, transposed), vector ? await numbers(vector, false) : null];
  const stored = { W: { shape: [classes, d], ...asStored(W) }, b: b && { shape: [classes], ...asStored(b) } };
  return { W: W.values, b: b && b.values, classes, d, stored };
}

/** A vector of d numbers that is neither the table nor its bias: gain or shift of a normalisation. */
export async function readVector(arrays, name, d) {
  const vector = arrays.find((one) => one.name === name);
  if (vector.shape.at(-1) !== d) throw new Error(`${name} has ${vector.shape.at(-1)} entries for ${d} features: choose another gain or shift, or none.`);
  return (await numbers(vector, false)).values;
}

/** Row by row: the raw numbers as the checker stores them, and as float64. */
async function numbers(array, transposed) {
  const bytes = await array.read();
  const [order, kind] = array.dtype === "bf16" ? ["<", "bf16"] : [array.dtype[0], array.dtype.slice(1)];
  if (order === ">") {
    const width = SIZES[array.dtype];
    for (let k = 0; k < bytes.length; k += width) bytes.subarray(k, k + width).reverse();
  }
  const copy = bytes.slice().buffer;
  let raw = kind === "bf16" ? new Float32Array(Uint32Array.from(new Uint16Array(copy), (half) => half << 16).buffer) : new FLOATS[kind](copy);
  if (Boolean(array.fortran) !== transposed && array.shape.length === 2) {
    const [rows, columns] = transposed ? [array.shape[1], array.shape[0]] : array.shape;
    const turned = new raw.constructor(raw.length);
    for (let i = 0; i < rows; i++) for (let k = 0; k < columns; k++) turned[i * columns + k] = raw[k * rows + i];
    raw = turned;
  }
  const values = kind === "f2" ? Float64Array.from(raw, halfToNumber) : Float64Array.from(raw);
  const bad = values.findIndex((value) => !Number.isFinite(value));
  if (bad >= 0) throw new Error(`${array.name} has a NaN or infinite entry, the first at place ${bad}: repair the weights first.`);
  return order === ">" ? { raw: values, values, kind: "f8" } : { raw, values, kind: kind === "bf16" ? "f4" : kind };
}

const bytesOf = (values) => new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
const asStored = ({ raw, kind }) => ({ dtype: `<${kind}`, bytes: bytesOf(raw) });

/** Names in the file itself, GGUF's vocabulary, an array `tokens` of strings or PP-OCR's list; null when there is none that fits. */
export async function storedTokens(arrays, classes) {
  if (arrays.names?.length === classes) return arrays.names;
  if (arrays.lines) {
    const lines = linesOf(arrays.lines); // PP-OCR's list: its networks have their blank first
    return fitNames(lines, classes, lines.length < classes ? "first" : "");
  }
  const array = arrays.find((one) => one.name === "tokens" && /^[<|]?[US]\d+$/.test(one.dtype) && one.shape.length === 1 && one.shape[0] === classes);
  if (!array) return null;
  const bytes = await array.read();
  const wide = array.dtype.includes("U");
  const width = Number(/\d+$/.exec(array.dtype)[0]) * (wide ? 4 : 1);
  return Array.from({ length: classes }, (_, t) => {
    const part = bytes.slice(t * width, (t + 1) * width);
    return (wide ? String.fromCodePoint(...new Uint32Array(part.buffer)) : new TextDecoder().decode(part)).replace(/\0+$/, "");
  });
}

/** Names from a file, one a line or a JSON list; `blank` says how a shorter list is meant: "first", "last", "none", or "". */
export function parseLabels(content, classes, fileName, blank = "") {
  let names;
  try {
    names = JSON.parse(content);
  } catch {
    names = null;
  }
  if (!Array.isArray(names) || names.some((name) => typeof name !== "string")) names = linesOf(content);
  const fitted = fitNames(names, classes, blank);
  if (fitted) return fitted;
  const not = blank ? `, not a blank ${blank}` : "";
  throw new Error(`${fileName} has ${names.length} names for ${classes} classes${not}: give the model's own list, or say where the blank is that the list lacks.`);
}

/** Lines end with line feeds only: some dictionaries hold other line separators as entries. */
const linesOf = (text) => (text ? text.replace(/\n$/, "").split("\n").map((line) => line.replace(/\r$/, "")) : []);

/** The names of all classes, or null where a list of another length is not meant so; the layouts are those of softgeom scan --blank. */
function fitNames(names, classes, blank) {
  const missing = classes - names.length;
  if (!blank) return missing === 0 ? names : null;
  if (blank === "none") return Array.from({ length: classes }, (_, t) => names[t] ?? `<unused ${t}>`);
  const itself = /^[^\p{L}\p{N}]*(ctc[^\p{L}\p{N}]*)?(blank|blk)[^\p{L}\p{N}]*$/iu;
  const [ownFirst, ownLast] = [names[0], names.at(-1)].map((name) => name !== undefined && itself.test(name));
  if (blank === "last") return missing === (ownLast ? 0 : 1) && !ownFirst ? [...names, ...(ownLast ? [] : ["<blank>"])] : null;
  const spaces = ownFirst ? missing : missing - 1;
  return spaces >= 0 && spaces <= 2 && !ownLast ? [...(ownFirst ? [] : ["<blank>"]), ...names, ...Array(spaces).fill(" ")] : null;
}

// GGUF files (llama.cpp): a table in blocks of codes is turned into the float32 numbers that it stands for, rounded as the package gguf rounds them.

const MOST_HEADER = 1e8; // bytes in which names, vocabulary and shapes must end
const BLOCKS = { 0: ["F32", 1, 4], 1: ["F16", 1, 2], 2: ["Q4_0", 32, 18], 3: ["Q4_1", 32, 20], 6: ["Q5_0", 32, 22], 7: ["Q5_1", 32, 24], 8: ["Q8_0", 32, 34], 12: ["Q4_K", 256, 144], 13: ["Q5_K", 256, 176], 14: ["Q6_K", 256, 210], 30: ["BF16", 1, 2] }; // name, numbers and bytes of a block
const FACTS = { 0: ["Uint8", 1], 1: ["Int8", 1], 2: ["Uint16", 2], 3: ["Int16", 2], 4: ["Uint32", 4], 5: ["Int32", 4], 6: ["Float32", 4], 7: ["Uint8", 1], 10: ["BigUint64", 8], 11: ["BigInt64", 8], 12: ["Float64", 8] }; // kinds and bytes of numbers
const [TEXT, LIST] = [8, 9];

export function halfToNumber(half) {
  const [exponent, fraction] = [(half >> 10) & 31, half & 1023];
  const size = exponent === 0 ? fraction * 2 ** -24 : exponent === 31 ? (fraction ? NaN : Infinity) : (1 + fraction / 1024) * 2 ** (exponent - 15);
  return half & 0x8000 ? -size : size;
}

/** The 32 numbers of a block whose codes have 4, 5 or 8 bits: scale, least value (in kinds that end in 1), fifth bits, codes. */
function ofSmallBlock(kind, block, out, to) {
  const [bits, lifted] = [Number(kind[1]), kind.endsWith("1")];
  const [scale, least, fifth] = [halfToNumber(block.getUint16(0, true)), lifted ? halfToNumber(block.getUint16(2, true)) : 0, lifted ? 4 : 2];
  const [codes, middle] = [bits === 5 ? fifth + 4 : fifth, lifted ? 0 : 2 ** (bits - 1)];
  for (let k = 0; k < 32; k++) {
    const low = (block.getUint8(codes + (k % 16)) >> (k < 16 ? 0 : 4)) & 15;
    const high = bits === 5 ? ((block.getUint32(fifth, true) >>> k) & 1) << 4 : 0;
    const code = bits === 8 ? block.getInt8(codes + k) : (low | high) - middle;
    out[to + k] = Math.fround(scale * code) + least;
  }
}

/** The 256 numbers of a block (Q4_K, Q5_K) in groups of 32, each with a scale and a depth of six bits in units of the block's. */
function ofGroups(kind, block, out, to) {
  const byte = (at) => block.getUint8(at);
  const [unit, deep] = [halfToNumber(block.getUint16(0, true)), halfToNumber(block.getUint16(2, true))];
  for (let j = 0; j < 8; j++) {
    const [s, m] = j < 4 ? [byte(4 + j) & 63, byte(8 + j) & 63] : [(byte(8 + j) & 15) | ((byte(j) >> 2) & 48), (byte(8 + j) >> 4) | ((byte(4 + j) >> 2) & 48)];
    const [scale, depth] = [Math.fround(unit * s), Math.fround(deep * m)];
    for (let k = 0; k < 32; k++) {
      const low = (byte((kind === "Q5_K" ? 48 : 16) + 32 * (j >> 1) + k) >> (4 * (j % 2))) & 15;
      const high = kind === "Q5_K" ? ((byte(16 + k) >> j) & 1) << 4 : 0;
      out[to + 32 * j + k] = Math.fround(scale * (low | high)) - depth;
    }
  }
}

/** The 256 numbers of a block of Q6_K: low four bits, high two, a scale for every sixteen. */
function ofSixBits(block, out, to) {
  const unit = halfToNumber(block.getUint16(208, true));
  for (let n = 0; n < 256; n++) {
    const [half, group, k] = [n >> 7, n >> 5, n & 31];
    const low = (block.getUint8(64 * half + 32 * (group & 1) + k) >> (group & 2 ? 4 : 0)) & 15;
    const high = (block.getUint8(128 + 32 * half + k) >> (2 * (group & 3))) & 3;
    out[to + n] = Math.fround(unit * block.getInt8(192 + (n >> 4))) * ((low | (high << 4)) - 32);
  }
}

/** What blocks of a kind stand for, as the bytes of float32 numbers. */
function dequantised([kind, each, width], bytes) {
  if (kind === "F32" || kind === "BF16") return bytes;
  const out = new Float32Array((bytes.length / width) * each);
  for (let n = 0; n < out.length / each; n++) {
    const block = new DataView(bytes.buffer, bytes.byteOffset + n * width, width);
    if (kind === "F16") out[n] = halfToNumber(block.getUint16(0, true));
    else if (kind === "Q6_K") ofSixBits(block, out, n * each);
    else (each === 32 ? ofSmallBlock : ofGroups)(kind, block, out, n * each);
  }
  return new Uint8Array(out.buffer);
}

/** How GPT-2's vocabulary spells the 256 bytes: those that are no visible sign of Latin-1 as the signs from 256 on. */
const visible = (n) => (n > 32 && n < 127) || (n > 160 && n !== 173);
const spelt = new Map();
for (let n = 0, next = 256; n < 256; n++) spelt.set(String.fromCodePoint(visible(n) ? n : next++), n);

/** A piece in the text that it stands for. */
function decodePiece(piece) {
  const bytes = Array.from(piece, (sign) => spelt.get(sign));
  return bytes.includes(undefined) ? piece : new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(bytes));
}

/** The arrays of a file as `openWeights` has them, and `names`: its own vocabulary, or undefined. */
export async function openGguf(file) {
  const view = new DataView(await file.slice(0, MOST_HEADER).arrayBuffer());
  let at = 8;
  const whole = () => ((at += 8), Number(view.getBigUint64(at - 8, true)));
  const short = () => ((at += 4), view.getUint32(at - 4, true));
  const text = () => {
    const size = whole();
    at += size;
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(new Uint8Array(view.buffer, at - size, size));
  };
  const fact = (kind) => {
    if (kind === TEXT) return text();
    if (kind === LIST) {
      const [of, many] = [short(), whole()];
      if (of === TEXT || of === LIST) return Array.from({ length: many }, () => fact(of));
      return void (at += many * FACTS[of][1]);
    }
    const [type, size] = FACTS[kind];
    at += size;
    return Number(view[`get${type}`](at - size, true));
  };
  const [arrays, facts] = [[], {}];
  try {
    const [tensors, told] = [whole(), whole()];
    for (let n = 0; n < told; n++) facts[text()] = fact(short());
    for (let n = 0; n < tensors; n++) {
      const [name, shape] = [text(), Array.from({ length: short() }, whole).reverse()]; // the file lists the fastest axis first
      const [number, offset] = [short(), whole()];
      const dtype = { undefined: `GGUF type ${number}`, BF16: "bf16" }[BLOCKS[number]?.[0]] ?? "<f4";
      arrays.push({ name, shape, kind: BLOCKS[number], floats: number in BLOCKS, dtype, offset });
    }
  } catch {
    throw new Error(`${file.name} is not a whole GGUF file: fetch it again.`);
  }
  if (facts["split.count"] > 1) throw new Error(`${file.name} is one of ${facts["split.count"]} parts of a model: merge them first (llama-gguf-split --merge).`);
  const step = facts["general.alignment"] ?? 32;
  const start = Math.ceil(at / step) * step;
  for (const array of arrays) {
    const { name, shape, kind, floats, offset } = array;
    if (!floats) continue;
    const size = (shape.reduce((product, n) => product * n, 1) / kind[1]) * kind[2];
    if (!(Number.isSafeInteger(size) && start + offset + size <= file.size)) throw new Error(`${file.name} ends before the tensor ${JSON.stringify(name)} does: fetch it again.`);
    array.read = async () => dequantised(kind, new Uint8Array(await file.slice(start + offset, start + offset + size).arrayBuffer()));
  }
  const pieces = facts["tokenizer.ggml.tokens"];
  const names = facts["tokenizer.ggml.model"] === "gpt2" ? pieces?.map(decodePiece) : pieces;
  return Object.assign(arrays, { names, head: (table) => ggufHead(arrays, facts, table), behind: (table) => behindScores(facts, table) });
}

/** The output matrix, or the token embedding of an architecture that llama.cpp ties to it (checkpoints/gguf_file.py). */
function ggufHead(arrays, facts, { embedders }) {
  const kind = facts["general.architecture"];
  const has = (name) => arrays.some((one) => one.name === name);
  const adapter = facts["general.type"] === "adapter";
  const pooled = facts[`${kind}.pooling_type`] || arrays.some(({ name }) => /^cls[._]/.test(name));
  if (adapter || pooled || !kind || embedders.includes(kind))
    return { why: `it is ${adapter ? "an adapter" : `a model of embeddings or ranks (${kind || "unnamed"})`}, which has no output layer over its vocabulary` };
  const bias = has("output.bias") ? "output.bias" : null;
  if (has("output.weight")) return { name: "output.weight", bias, why: "the output matrix of the file" };
  if (has("token_embd.weight")) return { name: "token_embd.weight", bias, why: `the embedding, to which the output of ${kind} is tied` };
  return { why: "it has neither output.weight nor token_embd.weight" };
}

/** What the header puts between the scores and the answer, in a sentence (softgeom/readout.py); "" for a plain softmax. */
function behindScores(facts, { behind, defaults }) {
  const kind = facts["general.architecture"];
  const said = (key) => facts[`${kind}.${key}`] ?? defaults[kind]?.[key] ?? (key === "d_model" ? facts[`${kind}.embedding_length`] : undefined);
  const parts = Object.entries(behind).filter(([key, families]) => ![undefined, 0, 1].includes(said(key)) && (!families || families.includes(kind)));
  if (!parts.length) return "";
  const told = parts.map(([key]) => `${key} is ${said(key)}`).join("; ");
  return `Behind the layer, scores are scaled or capped: ${told}. Verdicts do not depend on it; probabilities would be those of a softmax of the scores, not of the model's output.`;
}

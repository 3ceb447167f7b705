// ONNX files: the constants that a MatMul, a Gemm or a 1 x 1 Conv multiplies by, read from the wire format of protocol buffers; nothing is run.

const TYPES = { 1: "<f4", 10: "<f2", 11: "<f8", 16: "bf16" };
const PRODUCTS = ["MatMul", "Gemm", "Conv"];
const MOST_BYTES = 5e8; // of a file, which is read whole

/** [number, place behind it] of the varint at a place. */
function varint(bytes, at) {
  for (let [value, scale] = [0, 1]; at < bytes.length; scale *= 128) {
    const byte = bytes[at++];
    value += (byte & 127) * scale;
    if (byte < 128) return [value, at];
  }
  throw new RangeError("cut short");
}

/** The fields of a message by their numbers: numbers as they are, texts and nested messages as bytes. */
function partsOf(bytes) {
  const found = {};
  for (let at = 0, key, value; at < bytes.length;) {
    [key, at] = varint(bytes, at);
    const wire = key % 8;
    if (wire === 0) [value, at] = varint(bytes, at);
    else {
      let size = { 1: 8, 5: 4 }[wire];
      if (wire === 2) [size, at] = varint(bytes, at);
      if (!(at + size <= bytes.length)) throw new RangeError("cut short");
      value = bytes.subarray(at, (at += size));
    }
    (found[Math.floor(key / 8)] ??= []).push(value);
  }
  return found;
}

const texts = (list = []) => list.map((bytes) => new TextDecoder().decode(bytes));

/** Integers of a repeated field, packed or not. */
function integers(list = []) {
  return list.flatMap((one) => {
    if (typeof one === "number") return [one];
    const found = [];
    for (let at = 0, value; at < one.length;) {
      [value, at] = varint(one, at);
      found.push(value);
    }
    return found;
  });
}

function tensorOf(fields, name) {
  const shape = integers(fields[1]);
  const dtype = TYPES[fields[2]?.[0]] ?? `ONNX type ${fields[2]?.[0]}`;
  const content = fields[9]?.[0] ?? (dtype === "<f4" ? fields[4]?.[0] : undefined);
  const numbers = shape.reduce((product, n) => product * n, 1);
  const width = { "<f4": 4, "<f2": 2, "<f8": 8, bf16: 2 }[dtype];
  return { name, shape, dtype, floats: content?.length === numbers * width, read: async () => content };
}

/** The arrays of a file as `openWeights` has them, the last product's first, `columns` where it is stored as features x classes, with its bias;
 * `lines` is the list of names that PP-OCR's files carry. */
export async function openOnnx(file) {
  if (file.size > MOST_BYTES) throw new Error(`${file.name} is larger than this page reads whole: use softgeom scan.`);
  let [model, nodes, constants] = [null, [], new Map()];
  try {
    model = partsOf(new Uint8Array(await file.arrayBuffer()));
    const graph = partsOf(model[7][0]);
    nodes = (graph[1] ?? []).map(partsOf).map((fields) => ({ kind: texts(fields[4])[0], from: texts(fields[1]), to: texts(fields[2]), set: (fields[5] ?? []).map(partsOf) }));
    for (const fields of (graph[5] ?? []).map(partsOf)) constants.set(texts(fields[8])[0], fields);
    for (const { kind, to, set } of nodes) if (kind === "Constant" && set[0]?.[5]) constants.set(to[0], partsOf(set[0][5][0]));
  } catch {
    throw new Error(`${file.name} is not a whole ONNX file: fetch it again.`);
  }
  const arrays = [];
  const take = (name) => arrays.find((one) => one.name === name) ?? (arrays.push(tensorOf(constants.get(name), name)), arrays.at(-1));
  for (const { kind, from, to, set } of [...nodes].reverse()) {
    const weight = PRODUCTS.includes(kind) && from.find((name) => constants.has(name));
    if (!weight) continue;
    const table = take(weight);
    if (table.shape.length === 4 && table.shape[2] * table.shape[3] === 1) table.shape = table.shape.slice(0, 2);
    const turned = kind === "Gemm" && set.some((one) => texts(one[1])[0] === "transB" && one[3]?.[0]);
    table.columns = kind !== "Conv" && !turned && weight === from[1];
    const added = kind === "MatMul" ? nodes.find((node) => node.kind === "Add" && node.from.includes(to[0]))?.from : from.slice(2);
    table.bias = added?.find((name) => name !== weight && constants.has(name));
    if (table.bias) take(table.bias);
  }
  const said = (model[14] ?? []).map(partsOf).find((fields) => texts(fields[1])[0] === "character");
  return Object.assign(arrays, { lines: said && texts(said[2])[0] });
}

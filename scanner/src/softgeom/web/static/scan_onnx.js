// ONNX files: the constants that a MatMul, a Gemm or a 1 x 1 Conv multiplies by, read from the wire format of protocol buffers; nothing is run.

const TYPES = { 1: "<f4", 10: "<f2", 11: "<f8", 16: "bf16" };
const PRODUCTS = ["MatMul", "Gemm", "Conv"];
const ONE_AXIS = 13; // the opset since which a softmax runs over one axis
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

/** The operation of a node; of another domain under its full name, for there it may do anything. */
function kindOf(fields) {
  const [kind, domain] = [texts(fields[4])[0], texts(fields[7])[0]];
  return !domain || domain === "ai.onnx" ? kind : `${domain}::${kind}`;
}

/** How many axes an output has; 0 where the file does not say. */
const axesOf = (fields) => [2, 1, 2].reduce((inner, key) => partsOf(inner[key]?.[0] ?? []), fields)[1]?.length ?? 0;

/** A number among the options of a node. */
function optionOf(set, name, otherwise = 0) {
  const fields = set.find((one) => texts(one[1])[0] === name);
  const float = fields?.[2]?.[0];
  return float ? new DataView(float.buffer, float.byteOffset, 4).getFloat32(0, true) : (fields?.[3]?.[0] ?? otherwise);
}

/** The layer of a graph's scores: a product with a constant, at most a bias, at most a softmax, and nothing else up to the output. */
function onnxHead(graph, { scores, states }) {
  const called = graph.outputs.filter(({ name }) => new RegExp(scores, "i").test(name));
  const kept = graph.outputs.filter(({ name }) => !new RegExp(states, "i").test(name));
  const asked = called.length ? called : kept.length ? kept : graph.outputs;
  const found = asked.map((output) => layerBehind(graph, output));
  const open = found.filter(({ name }) => !name);
  if (open.length || !found.length) return { why: open.map(({ why }) => why).join("; ") || "the graph has no output" };
  const names = [...new Set(found.map(({ name }) => name))];
  if (names.length > 1) return { why: "the graph has several heads, one an output", some: graph.arrays.filter(({ name }) => names.includes(name)) };
  const same = found.every(({ bias }) => bias === found[0].bias);
  return same ? found[0] : { why: "two outputs choose between the classes in two ways" };
}

/** Back from an output to its product: {name, bias, transposed, why}, or {why} with the first operation that this page does not follow. */
function layerBehind({ arrays, nodes, opset }, output) {
  const constant = (name) => arrays.find((one) => one.name === name);
  let [name, softmax, bias] = [output.name, null, null];
  for (let left = nodes.length; left; left--) {
    const node = nodes.find(({ to }) => to.includes(name));
    const refuse = (what) => ({ why: `output ${output.name}: ${node.kind} ${what}` });
    if (!node) break;
    const at = node.from.findIndex(constant);
    if (node.kind === "Identity") name = node.from[0];
    else if (["Softmax", "LogSoftmax"].includes(node.kind) && !softmax && !bias) [softmax, name] = [node, node.from[0]];
    else if (node.kind === "Add" && at >= 0 && !bias) [bias, name] = [constant(node.from[at]), node.from[1 - at]];
    else if (!PRODUCTS.includes(node.kind)) return refuse("is not followed on this page");
    else {
      const [conv, own, weight] = [node.kind === "Conv", node.from[2], constant(node.from[1])];
      if (weight?.shape.length !== 2) return refuse("multiplies with no constant table on its right");
      if (own && (bias || !constant(own))) return refuse("adds more than a constant bias");
      for (const factor of ["alpha", "beta", "group"]) if (optionOf(node.set, factor, 1) !== 1) return refuse(`has the option ${factor}`);
      const classes = weight.shape[weight.columns ? 1 : 0];
      const added = bias ?? (own ? constant(own) : null);
      const fits = added === null || (added.shape.at(-1) === classes && added.shape.every((n, k) => n === 1 || k === added.shape.length - 1));
      if (!fits || (conv && bias)) return refuse(`is followed by an Add of shape (${added.shape.join(", ")})`);
      const axes = node.kind === "Gemm" ? 2 : output.axes; // none of the operations changes their number
      const axis = softmax && optionOf(softmax.set, "axis", opset < ONE_AXIS ? 1 : -1);
      const along = axis === null || (conv ? axis === 1 && opset >= ONE_AXIS : axis === -1 || (axes > 0 && axis === axes - 1));
      if (!along) return refuse(`is followed by a ${softmax.kind} along axis ${axis}, which may not be that of the classes`);
      return { name: weight.name, bias: added?.name ?? null, transposed: weight.columns, why: `the last product with a constant before the output (${node.kind})` };
    }
  }
  return { why: `output ${output.name} comes from no product with a constant` };
}

/** The arrays of a file as `openWeights` has them, the last product's first, `columns` where it is stored as features x classes, with its bias;
 * `lines` is the list of names that PP-OCR's files carry. */
export async function openOnnx(file) {
  if (file.size > MOST_BYTES) throw new Error(`${file.name} is larger than this page reads whole: use softgeom scan.`);
  let [model, nodes, constants, outputs] = [null, [], new Map(), []];
  try {
    model = partsOf(new Uint8Array(await file.arrayBuffer()));
    const graph = partsOf(model[7][0]);
    outputs = (graph[12] ?? []).map(partsOf).map((fields) => ({ name: texts(fields[1])[0], axes: axesOf(fields) }));
    nodes = (graph[1] ?? []).map(partsOf).map((fields) => ({ kind: kindOf(fields), from: texts(fields[1]), to: texts(fields[2]), set: (fields[5] ?? []).map(partsOf) }));
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
    const turned = kind === "Gemm" && optionOf(set, "transB");
    table.columns = kind !== "Conv" && !turned && weight === from[1];
    const added = kind === "MatMul" ? nodes.find((node) => node.kind === "Add" && node.from.includes(to[0]))?.from : from.slice(2);
    table.added = added?.find((name) => name !== weight && constants.has(name));
    if (table.added) take(table.added);
  }
  const said = (model[14] ?? []).map(partsOf).find((fields) => texts(fields[1])[0] === "character");
  const opset = (model[8] ?? []).map(partsOf).find((fields) => !texts(fields[1])[0])?.[2]?.[0] ?? 1;
  return Object.assign(arrays, { lines: said && texts(said[2])[0], head: (table) => onnxHead({ arrays, nodes, outputs, opset }, table) });
}

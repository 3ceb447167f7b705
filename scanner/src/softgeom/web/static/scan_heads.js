// Which table of a file is its softmax layer: certain, or the visitor chooses. The rules are those of checkpoints/choosing.py for a file that nothing describes,
// and the names are its own: they come with the page, as `table` (scan_page.py).

const MOST_AXES = 4; // of a convolution of width 1
const SHOWN = 6; // tables that a sentence lists
const compiled = new Map();

/** Whether a name fits one of these, in which * stands for any text. */
function fitsOne(name, patterns) {
  return patterns.some((pattern) => {
    if (!compiled.has(pattern)) compiled.set(pattern, new RegExp(`^${pattern.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*")}$`, "s"));
    return compiled.get(pattern).test(name);
  });
}

/** A name without what wrappers put into it. */
function canonical(name, table) {
  const parts = name.split(".").filter((part) => !table.wrappers.includes(part));
  const copy = parts.indexOf("modules_to_save"); // PEFT's, in place of what it trained
  if (copy >= 0) parts.splice(copy, 2);
  while (parts.length > 1 && table.containers.includes(parts[0])) parts.shift();
  return parts.join(".");
}

const stemOf = (name, table) => canonical(name, table).replace(new RegExp(table.ending), "");
const sizeOf = ({ shape }) => (shape.length === 1 || (shape.length === 2 && Math.min(...shape) === 1) ? Math.max(...shape) : -1);
export const isTable = ({ shape }) => shape.length >= 2 && shape.length <= MOST_AXES && shape.every((n, k) => n > 0 && (k < 2 || n === 1));
const listed = (some) => some.map(({ name, shape }) => `${name} (${shape.join(", ")})`).join(", ");

/** The bias beside a table: the same stem, and as many numbers as it has rows or columns. */
function siblingOf(arrays, { name, shape }, table) {
  for (const [ending, other] of table.siblings) {
    const wanted = name.endsWith(ending) && name.slice(0, name.length - ending.length) + other;
    const found = wanted && arrays.find((one) => one.name === wanted && wanted !== name && shape.slice(0, 2).includes(sizeOf(one)));
    if (found) return found;
  }
  return null;
}

/** A table as a layer: {name, shape, stem, classes, features, transposed, bias}, and `open`, why its bias is not certain. */
function matrixOf(arrays, one, table) {
  const { name, shape, columns, added } = one;
  const beside = siblingOf(arrays, one, table);
  const [rows, width] = shape;
  const transposed = columns ?? (beside && rows !== width ? sizeOf(beside) === width : name.endsWith("kernel"));
  const [classes, features] = transposed ? [width, rows] : [rows, width];
  const found = { name, shape, stem: stemOf(name, table), classes, features, transposed, bias: added ?? beside?.name ?? null, open: "" };
  if (found.bias || columns !== undefined) return found;
  const embedding = fitsOne(found.stem, table.embeddings);
  if (!embedding && !fitsOne(found.stem, [...table.language, "W", "weight", ""])) return found;
  const known = table.biases.flatMap((other) => arrays.filter((each) => canonical(each.name, table) === other));
  found.bias = known.find((each) => sizeOf(each) === rows)?.name ?? null;
  if (found.bias) return found;
  const taken = new Set(arrays.filter(isTable).map((each) => siblingOf(arrays, each, table)));
  const loose = arrays.filter((each) => embedding && each.name.endsWith("bias") && sizeOf(each) === rows && !taken.has(each));
  if (loose.length) found.open = `one of these may be the output's bias: ${listed(loose)}`;
  else if (rows !== width && known.some((each) => sizeOf(each) === width)) found.open = `its bias has ${width} entries, so it may be stored as features × classes`;
  return found;
}

/** The head of tensors that nothing describes, by an unmistakable name or by structure: {name, why}, or {why, some} when none is certain. */
function undescribed(arrays, there, table) {
  const heads = [...table.language, ...table.frames, ...table.classes];
  for (const { name, shape } of arrays) {
    const short = canonical(name, table);
    const place = short.search(new RegExp(table.coded));
    const stem = place >= 0 && short.slice(0, place);
    if (stem && (fitsOne(stem, heads) || fitsOne(stem.replace(new RegExp(table.ending), ""), heads)))
      throw new Error(`the head is quantised or stored in parts (${name} (${shape.join(", ")})), so the layer that runs is not in the file: take the model's float weights, or merge its adapter first.`);
  }
  const all = there.filter(({ stem }) => fitsOne(stem, heads));
  const guided = all.filter(({ stem }) => stem === "head.ctc_head.fc"); // PaddleOCR's other head only guides the training
  const named = guided.length ? guided : all;
  if (named.length > 1) return { why: "it has several heads", some: named };
  if (named.length) return { ...named[0], why: "the only tensor with the name of a head" };
  if (there.length === 1) return { ...there[0], why: "the only matrix that can be one" };
  const last = lastOfSequence(arrays, there, heads, table);
  return last ? { ...last, why: "the last of the layers that are numbered" } : { why: "no description says which matrix is the softmax layer", some: there };
}

/** The last layer of a Sequential that is a head by its name (classifier.6) or the whole model (0, 2), where the layers fit onto one another. */
function lastOfSequence(arrays, there, heads, table) {
  const groups = {};
  for (const { name } of arrays) {
    const numbered = /^(?:(.*)[./])?(\d+)$/s.exec(canonical(name, table).split(".").slice(0, -1).join("."));
    if (numbered) ((groups[numbered[1] ?? ""] ??= [])[Number(numbered[2])] ??= []).push(name);
  }
  const whole = arrays.every(({ name }) => /^\d+$/.test(canonical(name, table).split(".")[0]));
  const ends = Object.entries(groups).filter(([stem]) => heads.includes(stem) || (whole && !stem));
  if (ends.length !== 1) return null;
  const chain = Object.values(ends[0][1]).map((names) => there.find(({ name }) => names.includes(name)));
  return chain.filter(Boolean).every((one, n, all) => !n || all[n - 1].classes === one.features) ? chain.at(-1) : null;
}

/** What a file offers: {choices, vectors, chosen, said, behind}. `chosen` is the layer's name, null where the visitor must say it; `said` tells how it was found or
 * why it is open; `behind` what stands between its scores and the model's answer. An Error says why nothing can be scanned. */
export function headOf(arrays, fileName, table) {
  const part = new RegExp(table.part).exec(fileName.replace(/\.[^.]*$/, ""));
  if (part && Number(part[2]) > 1) throw new Error(`${fileName} is part ${Number(part[1])} of ${Number(part[2])}: softgeom scan reads the folder of the whole model.`);
  for (const one of arrays) if (isTable(one)) one.shape = one.shape.slice(0, 2); // a convolution of width 1 is a table
  const tables = arrays.filter((one) => isTable(one) && !one.name.includes(".original_module.") && !new RegExp(table.recurrent, "i").test(one.name));
  const there = tables.map((one) => matrixOf(arrays, one, table));
  const choices = there.filter(({ name }) => arrays.find((one) => one.name === name).floats);
  if (!choices.length) {
    const other = tables.map(({ name, dtype }) => `${name} (${dtype})`).slice(0, 4);
    const why = other.length ? `its tables are no floats: ${other.join(", ")}; a proof about rounded weights would be about another layer` : "it has no table of classes x features";
    throw new Error(`${fileName} has no layer that can be scanned: ${why}.`);
  }
  const names = [...table.language, ...table.frames, ...table.classes, ...table.embeddings];
  const rank = ({ stem, bias, features, classes }) => [!fitsOne(stem, names), bias === null, features - classes];
  choices.sort((p, q) => rank(p).map((value, k) => value - rank(q)[k]).find((difference) => difference) ?? 0);
  let found;
  try {
    found = arrays.head?.(table) ?? undescribed(arrays, there, table);
  } catch (error) {
    throw new Error(`${fileName}: ${error.message}`);
  }
  const own = choices.find(({ name }) => name === found.name);
  if (own && "bias" in found) Object.assign(own, { bias: found.bias, transposed: found.transposed ?? own.transposed, open: found.open ?? "" });
  const why = found.name ? `${found.name}, ${own ? found.why : "the layer, is not stored in floats"}` : found.why;
  const some = found.some ?? choices;
  const said = own ? why : `${why}; choose one: ${listed(some.slice(0, SHOWN))}${some.length > SHOWN ? ", and others" : ""}`;
  const vectors = arrays.filter((one) => one.floats && sizeOf(one) > 0).map((one) => ({ name: one.name, length: sizeOf(one) }));
  return { choices, vectors, chosen: own?.name ?? null, said, behind: arrays.behind?.(table) ?? "" };
}

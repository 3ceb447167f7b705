// What a lesson on a page makes of an answer: read it, judge it, and say so in the words of Python (lib/classroom), from which all
// sentences, numbers and tables come. Questions with finitely many answers have a table that Python made; the others are judged here, and
// Python judges again whatever is handed in.

/** The value of what was typed, by the form of the question: {value}, or {problem: a sentence}. */
export function read(text, form) {
  const typed = text.replace(/−/g, "-").replace(/\s*\/\s*/g, "/").trim();
  const parts = typed.match(/[^\s,;()[\]{}"'<>]+/g) ?? [];
  const refused = (problem) => ({ problem });
  if (!parts.length && form.kind !== "members") return refused("Write an answer first; a wrong one costs nothing.");
  if (form.kind === "number" || form.kind === "whole") {
    const value = parts.length === 1 ? scalar(parts[0]) : NaN;
    if (form.kind === "number") return Number.isFinite(value) ? { value } : refused("Write one number, such as 0.5 or 1/2.");
    const { low, high } = form;
    if (!Number.isInteger(value)) return refused(`Write a whole number, such as ${low + 3}.`);
    const inside = value >= low && (high === null || value <= high);
    return inside ? { value } : refused(`The answer is a whole number ${high === null ? `at least ${low}` : `between ${low} and ${high}`}.`);
  }
  if (form.kind === "array") {
    const [rows, columns] = form.shape.length === 2 ? form.shape : [1, form.shape[0]];
    const [least, most] = [rows].flat().concat(rows).slice(0, 2);
    const values = parts.map(scalar);
    const count = values.length / columns;
    if (!values.every((value) => Math.abs(value) <= 1e6)) return refused("Write numbers only, none beyond a million.");
    if (!Number.isInteger(count) || count < least || count > most)
      return refused(`Write ${least === most ? least * columns : `${least * columns} to ${most * columns}`} numbers${most > 1 ? ", row after row" : ""}; these are ${values.length}.`);
    const all = Array.from({ length: count }, (_, i) => values.slice(i * columns, (i + 1) * columns));
    return { value: form.shape.length === 2 ? all : all[0] };
  }
  if (form.kind === "fractions") {
    if (parts.length !== form.count) return refused(`Write ${form.count} fraction${form.count > 1 ? "s" : ""}, such as 1/3; these are ${parts.length}.`);
    return parts.every((part) => fraction(part)) ? { value: parts } : refused("Write fractions, such as 1/3.");
  }
  const names = form.names.map(String);
  const found = names.every((name) => name.length === 1 && /\D/.test(name)) ? parts.join("").toUpperCase().split("") : parts.map((part) => String(scalar(part) || part));
  const strange = found.find((name) => !names.includes(name));
  if (strange !== undefined) return refused(`Write names from ${names.join(", ")}; ${strange} is none of them.`);
  if (form.kind === "members") return { value: form.names.filter((name) => found.includes(String(name))) };
  const whole = found.length === names.length && new Set(found).size === names.length;
  return whole ? { value: found.join("") } : refused(`Each of ${names.join(", ")} must appear exactly once.`);
}

function scalar(part) {
  const [over, under = "1", ...more] = part.split("/");
  const plain = [over, under].every((side) => /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(side));
  return plain && !more.length ? Number(over) / Number(under) : NaN;
}

/** The reply: {right: true, false or null for a prediction, text: HTML}. */
export function judge(name, value, lesson, tools) {
  const question = lesson.questions[name];
  if (question.table) return lookedUp(question.table, value, lesson.texts);
  const say = (words, values = {}) => fill(lesson.words[words], values);
  const fault = JUDGES[name](value, lesson.data, say, tools);
  if (question.right === null) return { right: null, text: fault };
  const shares = question.form.kind === "fractions" ? value.map((part) => shown(fraction(part))).join(" + ") : "";
  return { right: fault === null, text: fault ?? say(`right ${name.split("-")[1]}`, { ...lesson.data, answer: value, shares }) };
}

function lookedUp({ runs, keys }, value, texts) {
  const [right, text] = texts[keys ? keys[String(value)] : runs.find(([last]) => last === null || value <= last)[1]];
  return { right, text: text.replaceAll("{n,}", value.toLocaleString("en-US")).replaceAll("{n}", value) };
}

/** A text of Python's with its places filled, as str.format does: {name}, {name[0]}, {name:.3g}. */
export function fill(text, values) {
  return text.replace(/\{(\w+)(?:\[(\d)\])?(?::([^}]*))?\}/g, (_, name, index, form) => shown(index ? values[name][index] : values[name], form));
}

function shown(value, form = "") {
  if (Array.isArray(value) && typeof value[0] === "bigint") return value[1] === 1n ? String(value[0]) : `${value[0]}/${value[1]}`;
  if (!form.endsWith("g")) return String(value);
  const digits = Number(form.slice(1, -1)) || 6;
  const [mantissa, power] = value.toExponential(digits - 1).split("e");
  const plain = power >= -4 && power < digits;
  return plain ? bare(toEven(value, digits - 1 - power)) : `${bare(mantissa)}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
}

/** As toFixed, but halves go to the even digit, as in Python. */
function toEven(value, places) {
  const [, exact = ""] = bare(value.toFixed(100)).split(".");
  const half = exact.length === places + 1 && exact.endsWith("5");
  const [up, down] = [value.toFixed(places), (value * (1 - 1e-15)).toFixed(places)];
  return half && Number(down.at(-1)) % 2 === 0 ? down : up;
}
const bare = (number) => (number.includes(".") ? number.replace(/\.?0+$/, "") : number);

// Fractions are pairs of BigInt, the second positive.
export function fraction(text) {
  const found = /^([+-]?)(\d*)(?:\.(\d*))?(?:\/(\d+))?$/.exec(text);
  if (!found || text.length > 60 || !(found[2] || found[3]) || (found[3] !== undefined && found[4])) return null;
  const under = found[4] ? BigInt(found[4]) : 10n ** BigInt((found[3] ?? "").length);
  return under ? reduced(BigInt(found[1] + "1") * BigInt(found[2] + (found[3] ?? "")), under) : null;
}
const divisor = (a, b) => (b ? divisor(b, a % b) : a < 0n ? -a : a);
const reduced = (over, under) => [over / divisor(over, under), under / divisor(over, under)];
const plus = ([a, b], [c, d]) => reduced(a * d + c * b, b * d);
const times = ([a, b], [c, d]) => reduced(a * c, b * d);
const minus = (p, q) => plus(p, times([-1n, 1n], q));
const size = ([a, b]) => [a < 0n ? -a : a, b];
const below = (p, q) => minus(p, q)[0] < 0n;
const same = (p, q) => minus(p, q)[0] === 0n;
const sum = (parts) => parts.reduce(plus, [0n, 1n]);
const mean = (weights, rows) => [0, 1].map((axis) => sum(weights.map((weight, i) => times(weight, fraction(String(rows[i][axis]))))));

const dot = (p, q) => p.reduce((total, value, k) => total + value * q[k], 0);
const near = (value, right, tolerance = 1e-3) => Math.abs(value - right) <= tolerance;
const roughly = (value, right) => near(value, right, 0.01 * Math.abs(right));
const nearest = (thoughts, close, otherwise) => (thoughts.find(([, value]) => close(value)) ?? [otherwise])[0];
const losers = ({ makeLayer, verdicts }, W, b, names) => verdicts(makeLayer(W, b)).flatMap(({ verdict }, t) => (verdict === "argmaxable" ? [] : [names[t]]));

/** What is wrong with the value of each of these questions, or null; of a prediction what is said to it. */
const JUDGES = {
  "rankings-4"(W, _, say, { makeLayer, countRankings }) {
    const { regions: count, lines } = countRankings(makeLayer(W));
    if (!count) return say("square equal");
    return count === 8 ? null : say("square", { lines, count, advice: say(count > 8 ? "square more" : "square fewer") });
  },
  "rankings-5"(b, { W, most }, say, { makeLayer, countRankings }) {
    const count = countRankings(makeLayer(W, b)).regions;
    return count === most ? null : say("shift", { count });
  },
  "winning-2"(x, { own }, say) {
    const logits = own.map((row) => dot(row, x));
    const best = Math.max(...logits);
    if (logits[3] < best) return say("witness", { first: "ABCD"[logits.indexOf(best)], behind: best - logits[3] });
    return logits.filter((y) => y === best).length > 1 ? say("witness tie") : null;
  },
  "winning-3"(weights, { triangle }, say) {
    const total = dot(weights, [1, 1, 1]);
    if (Math.min(...weights) < 0) return say("weights negative");
    if (!near(total, 1)) return say("weights sum", { total });
    const [u, v] = [0, 1].map((axis) => dot(weights, triangle.map((row) => row[axis])));
    const miss = Math.max(Math.abs(u - triangle[3][0]), Math.abs(v - triangle[3][1]));
    return miss > 1e-3 ? say("weights miss", { u, v }) : miss > 1e-12 || total !== 1 ? say("weights near") : null;
  },
  "winning-4"(bias, { triangle, biases, roof }, say, tools) {
    if (near(bias, roof)) return null;
    if (near(bias, Math.max(...biases))) return say("bias best");
    if (near(bias, dot(biases, [1, 1, 1]) / 3)) return say("bias mean");
    return say(losers(tools, triangle, [...biases, bias], "ABCD").includes("D") ? "bias less" : "bias more");
  },
  "winning-5"(b, { seven }, say, tools) {
    const stuck = losers(tools, seven, b, "ABCDEFG");
    return stuck.length ? say("all", { stuck: stuck.join(", ") }) : null;
  },
  "folding-guess"(guess, _, say) {
    const found = say("fold found", { guess, right: 1 });
    const thoughts = [["fold", 1], ["fold distance", 0.25], ["fold corrected", 0.5], ["fold width", 2], ["fold squared", 4]];
    const thought = guess < 0 ? "fold negative" : guess === 0 ? "fold zero" : nearest(thoughts, (value) => roughly(guess, value), guess < 1 ? "fold small" : "fold large");
    return `${found} ${say(thought)}`;
  },
  "folding-1"(answer, _, say) {
    const thoughts = [["variance corrected", 4], ["variance mean", 1], ["variance root", Math.sqrt(8 / 3)], ["variance square", 11 / 3]];
    return roughly(answer, 8 / 3) ? null : say(nearest(thoughts, (value) => roughly(answer, value), "variance"));
  },
  "folding-2"(distance, { strong }, say) {
    const slope = 1 - (strong * distance ** 2) / 4; // equal weights in the middle
    if (roughly(distance, 2 / Math.sqrt(strong))) return null;
    return distance <= 0 ? say("distance") : say(slope > 0 ? "distance more" : "distance less", { slope });
  },
  "folding-4"(x, { past, coupling }, say, { evaluator }) {
    const value = evaluator(past, [[coupling, 0], [0, coupling]]).determinant(x);
    return value < 0 ? null : say("place", { value });
  },
  "folding-5": (answer, _, say) => (roughly(answer, 1) ? null : say(answer > 1 ? "smallest more" : "smallest less")),
  "leaders-2"(z, { before, after, goal, half }, say) {
    const close = (place) => place.every((value, axis) => near(z[axis], value));
    return close(after) ? null : say(nearest([["step goal", goal], ["step fraction", half], ["step none", before]], close, "step"));
  },
  "leaders-4"(Z, _, say, tools) {
    const found = settled(Z, say, tools);
    if (typeof found === "string") return found;
    const count = found.leads.filter(Boolean).length;
    return count === 2 ? null : say("two", { count, s: count > 1 ? "s" : "", advice: say(count > 2 ? "two more" : "two fewer") });
  },
  "leaders-5"(z, { rectangle }, say, tools) {
    const found = settled([...rectangle, z], say, tools);
    if (typeof found === "string") return found;
    if (found.leads[4]) return say("edge leader");
    const leader = found.leads.findIndex((leads, i) => leads && Math.hypot(...found.ends[i].map((value, axis) => value - found.ends[4][axis])) < 1e-8);
    return leader < 0 ? null : say("edge vertex", { leader: leader + 1 });
  },
  "trusting-1"(answer, { rows }, say) {
    const weights = answer.map(fraction);
    const flaw = () => {
      const negative = weights.findIndex(([over]) => over < 0n);
      if (negative >= 0) return say("flaw negative", { name: "ABC"[negative] });
      if (!same(sum(weights), [1n, 1n])) return say("flaw sum", { total: sum(weights) });
      const [u, v] = mean(weights, rows).map((value, axis) => minus(fraction(String(rows[3][axis])), value));
      return u[0] || v[0] ? say("flaw miss", { target: "D", u, v }) : null;
    };
    const [found, [over, under]] = [flaw(), weights[0]];
    const decimal = found && weights.some(([, each]) => each > 10n ** 6n);
    return decimal ? say("weights decimal", { given: Number(over) / Number(under), stored: shown(weights[0]).slice(0, 24), found }) : found;
  },
  "trusting-3"([answer], { right, plain }, say) {
    const [bias, roof] = [answer, right].map(fraction);
    const [off, large] = [size(minus(bias, roof)), below(roof, bias)];
    if (!off[0]) return null;
    if (below(off, [1n, 100n])) return say("bias near", { off, large: large ? "large" : "small" });
    return same(bias, fraction(plain)) ? say("bias mean") : say(large ? "bias more" : "bias less", { off });
  },
  "trusting-4"(answer, { box, miss, gap }, say) {
    if (answer === box) return null;
    if (answer === 2 * box) return say("box larger");
    const all = times([BigInt(answer), 1n], fraction(miss));
    return say(answer > box ? "box more" : "box less", { answer, miss, sum: all, gap });
  },
  "asking-3"(x, { index }, say) {
    const logits = index.map((row) => dot(row, x));
    const order = [...index.keys()].sort((i, j) => logits[j] - logits[i]); // a stable sort
    const names = order.map((i) => "ABCDEF"[i]);
    if (x.every((value) => value === 0)) return say("query zero");
    if (![...names.slice(0, 2)].sort().every((name, k) => name === "BC"[k])) return say("query others", { names });
    return logits[order[1]] === logits[order[2]] ? say("query tie", { names }) : null;
  },
  "asking-4"(answer, { index }, say) {
    const weights = answer.map(fraction);
    const sides = [["A and C", weights.slice(0, 2), [index[0], index[2]]], ["B and D", weights.slice(2), [index[1], index[3]]]];
    for (const [names, shares] of sides) {
      if (shares.some(([over]) => over < 0n)) return say("shares negative");
      if (!same(sum(shares), [1n, 1n])) return say("shares sum", { names, total: sum(shares) });
    }
    const [there, others] = sides.map(([, shares, rows]) => mean(shares, rows));
    if (there.every((value, axis) => same(value, others[axis]))) return null;
    const [apart, other] = [there, others].map((point) => `(${point.map((value) => shown(value)).join(", ")})`);
    return say("shares differ", { names: "A and C", apart, others: "B and D", there: other });
  },
};

/** Who leads and where everybody ends with alpha = 1, or a sentence where the theorem does not speak. */
function settled(Z, say, { trajectory, firstLeads }) {
  const zeros = Z.filter((z) => z.every((value) => value === 0)).length;
  const repeated = Z.length - new Set(Z.map(String)).size;
  if (zeros) return say("silent", { problem: `The clustering theorem asks for nonzero tokens; ${zeros} of them are zero, and a zero token is drawn to all tokens at once.` });
  if (repeated) return say("silent", { problem: `The clustering theorem asks for distinct tokens; ${repeated} repeat another one: give distinct rows with counts instead.` });
  const states = trajectory(Z, [[1, 0], [0, 1]], 1, 300);
  return { leads: firstLeads(states).map((layer) => layer >= 0), ends: states.at(-1).Z };
}

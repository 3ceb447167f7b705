// The softmax explorer: class vectors on the left, the features that each class wins on the right. The two planes are dual to each
// other (a class vector is a point there and a linear function here), so they are drawn side by side and not on top of each other.
//
// The model holds W (C pairs), b (C numbers or null), names (C strings or null), among (C numbers, 0 for a class that does not compete, or null),
// first (1, or 2 for the pairs that come first together), presets, hidden. A preset may name `withheld` classes: a slider lets their rows decay. Everything shown is computed here at
// once; in a notebook the kernel computes its verdicts from the same W and b. While it is hidden, the figure shows the class vectors, x and
// the ranking at x, which is what a search by hand needs; regions, tie lines, counts and verdicts wait for a guess.

import {
  MOST_CLASSES,
  argmaxCell,
  ceiling,
  centroid,
  clip,
  convexHull,
  countRankings,
  effectiveShape,
  evaluate,
  makeLayer,
  onHull,
  pairCell,
  pairsTogether,
  problemWith,
  rankingFormula,
  square,
  verdicts,
} from "./geometry.js";
import { guide } from "./guide.js";
import { liftedFigure } from "./lifted.js";
import {
  GRID,
  HIDDEN,
  Handle,
  Plane,
  assemble,
  beckon,
  colour,
  drawFront,
  format,
  html,
  matchHandles,
  moreAndFewer,
  nextPlace,
  presetMenu,
  say,
  scaffold,
  slider,
  snap,
  subscript,
  svg,
  toggle,
  watch,
  writer,
} from "./stage.js";

const FAR = 1e6; // a window for what happens outside the one on the screen
const BIAS_LIMIT = 4;
const MOST_NAMED = 12; // pairs in one sentence
const MISSIONS = [
  ["Without a bias, place four or more classes so that every one can win.", ({ told, layer }) => !layer.biased && !told.pairs && layer.classes >= 4 && told.lost.length === 0],
  ["Place the classes so that two can never win.", ({ told }) => told.lost.length >= 2 && told.found.every(({ verdict }) => verdict !== "tied")],
  ["Let a class inside the hull win by its bias.", ({ told }) => told.bounded !== ""],
  ["Find a special position: fewer rankings than the formula says.", ({ told, layer }) => told.counts.special && layer.classes >= 3],
];

const defaultName = (i) => subscript("c", i + 1);
const list = (words) => (words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`);
const pair = (p) => `(${format(p[0])}, ${format(p[1])})`;

/** What there is to say about pairs: the line that is announced, the pairs, and who is never seen together. */
export function describePairs(layer, name) {
  const pairs = pairsTogether(layer);
  const never = pairs.filter(({ why }) => why);
  const verdict = never.length
    ? `${pairs.length - never.length} of ${pairs.length} pairs can come first together.`
    : "Every pair can come first together.";
  const listed = never.slice(0, MOST_NAMED).map(({ pair: [i, j] }) => `${name(i)} ${name(j)}`);
  const more = never.length > MOST_NAMED ? `, and ${never.length - MOST_NAMED} more` : "";
  return { pairs, verdict, never: never.length ? `Never together: ${listed.join(", ")}${more}.` : "" };
}

/** What a decay of e^-amount leaves of W (C, 2): the rows of some classes come nearer to their mean, on the grid. */
export function decayed(W, some, amount) {
  const mean = [0, 1].map((k) => some.reduce((sum, i) => sum + W[i][k], 0) / some.length);
  const nearer = (row) => row.map((w, k) => snap(mean[k] + Math.exp(-amount) * (w - mean[k])));
  return W.map((row, i) => (some.includes(i) ? nearer(row) : row));
}

/** One sentence that proves why a pair never comes first together. */
export function explainPair({ pair: [i, j], why }, name) {
  const others = list(why.rivals.map(name));
  const where = {
    inside: () => `${name(why.end)} lies among ${others}`,
    on: () => `${others} lies between ${name(i)} and ${name(j)}`,
    across: () => `the line from ${name(i)} to ${name(j)} crosses that of ${others}`,
  }[why.how]();
  return `${name(i)} and ${name(j)}: ${where}. There a mean of the pair is a mean of others, so wherever x is, one of the others scores at least as much as one of the pair.`;
}

/** What there is to say about a layer: the line that is announced, the counts, and the reasons of each unargmaxable class. */
export function describe(layer, name) {
  const found = verdicts(layer);
  const named = (verdict) => found.flatMap((v, i) => (v.verdict === verdict ? [name(i)] : []));
  const [losers, twins] = [named("unargmaxable"), named("tied")];
  const parts = [];
  if (losers.length) parts.push(`${list(losers)} can never win`);
  if (twins.length) parts.push(`${list(twins)} tie with a twin`);
  const verdict = parts.length ? `${parts.join("; ")}.` : "Every class can win.";
  return { found, verdict, counts: describeCounts(layer), bounded: describeBounded(layer, found, name) };
}

function describeCounts(layer) {
  const count = countRankings(layer);
  const shape = effectiveShape(layer);
  const formula = rankingFormula(layer.classes, shape.dimension, shape.biased);
  const all = Array.from({ length: layer.classes }, (_, i) => i + 1).reduce((product, i) => product * i, 1);
  return { ...count, formula, all, special: count.regions < formula };
}

function describeBounded(layer, found, name) {
  if (!layer.biased) return "";
  const inside = found.flatMap((v, t) => (v.verdict === "argmaxable" && !onHull(layer, t) ? [name(t)] : []));
  if (!inside.length) return "";
  const many = inside.length > 1;
  return (
    `${list(inside)} ${many ? "lie" : "lies"} inside the hull and ${many ? "win" : "wins"} all the same: ` +
    `the bias lifts ${many ? "them" : "it"}, on ${many ? "bounded regions" : "a bounded region"}.`
  );
}

/** Weights that add up to 1, in hundredths that do too: those cut off most are rounded up. */
function hundredths(weights) {
  const floors = weights.map((w) => Math.floor(100 * w));
  const left = Math.round(100 - floors.reduce((sum, n) => sum + n, 0));
  const order = [...weights.keys()].sort((i, j) => 100 * weights[j] - floors[j] - (100 * weights[i] - floors[i]));
  for (const k of order.slice(0, left)) floors[k]++;
  return floors.map((n) => n / 100);
}

/** One sentence that proves why class t can never win. */
export function explain(verdict, t, name, biased) {
  if (verdict.verdict === "tied")
    return `${name(t)} and ${name(verdict.twin)} have equal weights and biases: neither ever beats the other.`;
  if (verdict.verdict !== "unargmaxable") return `${name(t)} can win: it has a region.`;
  const shares = hundredths(verdict.weights);
  const mean = verdict.rivals.map((i, k) => `${format(shares[k])} ${name(i)}`).join(" + ");
  const lead =
    biased && verdict.excess > 0 ? `, and their biases put that mean ${format(verdict.excess)} above ${name(t)} at every x` : "";
  return `${name(t)} = ${mean}${lead}. So wherever x is, one of ${list(verdict.rivals.map(name))} scores at least as much as ${name(t)}.`;
}

export function render({ model, el }) {
  const page = layOut(el);
  const put = writer(model);
  // `layer` holds the classes that compete, `who` their numbers among all; the last class is selected first.
  const state = { selected: MOST_CLASSES, why: false, lines: false, lift: false, turn: 20, x: [1, 0.75], handles: [], layer: null, who: [], decay: { amount: 0, W: [], withheld: [] } };
  const nameOf = (i) => model.get("names")?.[i] ?? defaultName(i);
  const name = (k) => nameOf(state.who[k]);

  const edit = (W, b) => put({ W, b });
  const moveClass = (i, at) =>
    edit(model.get("W").map((row, k) => (k === i ? at : row)), model.get("b"));
  const setBias = (i, value) => {
    const b = model.get("b") ?? model.get("W").map(() => 0);
    edit(model.get("W"), b.map((old, k) => (k === i ? Math.max(-BIAS_LIMIT, Math.min(BIAS_LIMIT, snap(value))) : old)));
  };
  const resize = (W, b, more = {}) => {
    if (W.length !== state.decay.W.length) state.decay.withheld = []; // other classes
    if (W.length > 0 && W.length <= MOST_CLASSES) put({ names: null, among: null, W, b, ...more });
  };
  const compete = (i, on) => {
    const among = (model.get("among") ?? model.get("W").map(() => 1)).map((old, k) => (k === i ? Number(on) : old));
    if (among.some(Boolean)) put({ among });
  };
  const select = (i) => {
    state.selected = i;
    draw();
  };
  const press = (i) => (event) => {
    const sign = { "+": 1, "=": 1, "-": -1, _: -1 }[event.key]; // "=" is the unshifted key of "+", "_" the shifted one of "-"
    if (!sign || !model.get("b")) return false;
    setBias(i, model.get("b")[i] + sign * (event.key === "_" ? GRID : 4 * GRID));
    return true;
  };

  const presets = presetMenu(page, model, ({ W, b, among = null, first = 1, withheld = [] }) => {
    state.selected = W.length - 1;
    state.decay = { amount: 0, W, withheld };
    help.rest();
    resize(W, b, { among, first });
  });
  const biasToggle = toggle(page.buttons, "Bias", (on) => edit(model.get("W"), on ? model.get("W").map(() => 0) : null));
  const linesToggle = toggle(page.buttons, "All rankings", (on) => ((state.lines = on), draw()), {
    title: "Show every line on which two classes tie",
  });
  const whyToggle = toggle(page.sliders, "Why?", (on) => ((state.why = on), draw()), {
    title: "Show the blocking classes of a class that can never win",
  });
  const amongToggle = toggle(page.buttons, "Candidates", (on) => put({ among: on ? model.get("W").map(() => 1) : null }), {
    title: "Choose which classes compete",
  });
  const pairsToggle = toggle(page.buttons, "Pairs", (on) => put({ first: on ? 2 : 1 }), {
    title: "Which two come first together? For layers without a bias, such as an index of documents",
  });
  const liftToggle = toggle(page.buttons, "Lift", (on) => ((state.lift = on), draw()), {
    title: "The bias as a height, in space",
  });
  const chips = [];
  const both = (change) => () => resize(...change(model.get("W"), model.get("b")));
  moreAndFewer(
    page.buttons,
    "class",
    [
      both((W, b) => [[...W, nextPlace(W.length, 1.25)], b && [...b, 0]]),
      both((W, b) => (W.length > 2 ? [W.slice(0, -1), b && b.slice(0, -1)] : [W, b])),
    ],
    ["Add a class", "Remove the last class"],
  );
  const bias = slider(page.sliders, {
    label: "bias",
    min: -BIAS_LIMIT,
    max: BIAS_LIMIT,
    step: 4 * GRID,
    input: (value) => setBias(state.selected, value),
  });
  const decay = slider(page.sliders, {
    label: "decay × steps × learning rate",
    min: 0,
    max: 2,
    step: 1 / 16,
    input: (amount) => {
      if (!state.decay.amount) state.decay.W = model.get("W"); // as dragged so far
      state.decay.amount = amount;
      edit(decayed(state.decay.W, state.decay.withheld, amount), model.get("b"));
    },
  });
  const zoom = slider(page.sliders, {
    label: "window of x",
    min: 1,
    max: 6,
    step: 0.5,
    input: (value) => (page.features.setHalf(2 ** value), draw()),
  });
  page.features.setHalf(4);
  const turn = slider(page.lift, { label: "turn", min: -180, max: 180, step: 5, input: (value) => ((state.turn = value), drawLift(page, state, name)) });
  const help = guide(
    page,
    [
      "Each point is a class, and its place is its row of weights. Drag one, or Tab to it and press the arrow keys.",
      "Each region holds the features x for which that class scores highest. The diamond is one such x; drag it.",
      "Here stand the classes that can never win; they are ringed. Press “Why?” for the proof.",
      "All orders that the layer can produce are counted, exactly, beside the formula for general position.",
      "A bias can free a class inside the hull; “Lift” shows it as a height.",
    ],
    MISSIONS,
  );
  const xHandle = new Handle(page.features, {
    name: "x",
    shape: "diamond",
    move: (at) => ((state.x = at), drawFeature(page, state, name, xHandle)),
  });
  page.editor.addEventListener("change", () => {
    const [W, b] = parseTable(page.editor.value);
    const problem = problemWith(W, b);
    say(page.message, problem);
    if (!problem) resize(W, b);
  });

  function draw() {
    const [W, b] = [model.get("W"), model.get("b")];
    const problem = problemWith(W, b);
    say(page.message, problem);
    if (problem) return; // the last good picture stays
    const among = model.get("among");
    state.who = [...W.keys()].filter((i) => !among || among[i]);
    state.layer = makeLayer(state.who.map((i) => W[i]), b && state.who.map((i) => b[i]));
    state.selected = Math.min(state.selected, W.length - 1);
    matchHandles(state.handles, W.length, (i) => {
      const options = { name: `class-${i}`, move: (at) => moveClass(i, at), select: () => select(i), press: press(i) };
      return new Handle(page.weights, options);
    });
    const hidden = Boolean(model.get("hidden"));
    const told = { ...describe(state.layer, name), hidden, pairs: null };
    if (model.get("first") === 2 && !state.layer.biased) {
      Object.assign(told, describePairs(state.layer, name));
      const never = told.pairs.filter(({ why }) => why);
      told.lost = never.find(({ pair }) => pair.some((k) => state.who[k] === state.selected)) ?? never[0];
    }
    if (among && state.who.length < W.length && !told.pairs) told.verdict = `Among ${list(state.who.map(nameOf))}: ${lower(told.verdict)}`;
    const chosen = state.who.indexOf(state.selected);
    const suspect =
      chosen < 0 || told.found[chosen].verdict === "argmaxable" ? told.found.findIndex((v) => v.verdict !== "argmaxable") : chosen;
    drawWeights(page, state, told, name, state.why && !hidden ? suspect : -1);
    placeClasses(state, told, nameOf, W, b);
    drawRegions(page, state, told, name);
    drawFeature(page, state, name, xHandle);
    say(page.sure, chosen < 0 || hidden || told.pairs ? "" : howSure(ceiling(state.layer, chosen, page.features.half), name(chosen)));
    tell(page, told, state, name, suspect);
    showChips(page, chips, { among, names: W.map((_, i) => nameOf(i)), compete });
    drawLift(page, state, name, told);
    turn.set(state.turn, `${state.turn}°`);
    help.check(hidden ? null : { layer: state.layer, told: { ...told, lost: told.found.filter(({ verdict }) => verdict !== "argmaxable") } });
    amongToggle.set(Boolean(among));
    pairsToggle.set(Boolean(told.pairs));
    pairsToggle.root.hidden = state.layer.biased;
    biasToggle.set(Boolean(b));
    linesToggle.set(state.lines);
    whyToggle.set(state.why);
    liftToggle.set(state.lift);
    liftToggle.root.hidden = !b || hidden;
    whyToggle.root.hidden = linesToggle.root.hidden = hidden;
    linesToggle.root.hidden ||= Boolean(told.pairs);
    presets.hide(hidden);
    bias.root.hidden = !b;
    bias.set(b?.[state.selected] ?? 0, format(b?.[state.selected] ?? 0), `bias of ${name(state.selected)}`);
    decay.root.hidden = !state.decay.withheld.length;
    decay.set(state.decay.amount, format(state.decay.amount));
    zoom.set(Math.log2(page.features.half), `±${format(page.features.half, 0)}`);
    if (document.activeElement !== page.editor)
      page.editor.value = W.map((row, i) => [...row, ...(b ? [b[i]] : [])].join("  ")).join("\n");
  }

  const stop = watch(model, ["W", "b", "names", "among", "first", "hidden"], draw);
  draw();
  beckon(model, page.weights, model.get("W").at(-1), [1.2, 1.2]);
  return stop;
}

function layOut(el) {
  const page = scaffold(el, "Softmax explorer", ["Class vectors: drag them", "Features: which class wins at x"]);
  const [left, right] = page.figures;
  const weights = new Plane(left, {
    half: 3,
    label: "Class vectors. Tab selects a class, arrow keys move it, Shift makes the steps finer, plus and minus change its bias.",
    axes: ["w₁", "w₂"],
  });
  const features = new Plane(right, {
    half: 4,
    label: "Regions of the feature plane, one for each class that comes first somewhere",
    axes: ["x₁", "x₂"],
  });
  const bar = html("div", { class: "sg-probabilities", "aria-hidden": "true" });
  const ranking = html("p", { class: "sg-ranking" });
  const sure = html("p", { class: "sg-note" });
  right.append(bar, ranking, sure);
  const editor = html("textarea", {
    rows: 5,
    spellcheck: "false",
    "aria-label": "Weights, one class per line: w1 w2, and a bias if there is one",
  });
  const numbers = html(
    "details",
    {},
    html("summary", {}, "Keyboard and numbers"),
    html("p", { class: "sg-note" }, "Tab selects a class, the arrow keys move it (Shift: finer steps), + and − change its bias."),
    html("p", { class: "sg-note" }, "One class per line: w₁ w₂, then the bias if there is one. Paste your own."),
    editor,
  );
  const lift = html("figure", { class: "sg-lift", hidden: "" }, html("figcaption", {}, "Biases as heights: the roof over all points has the winners as its corners"));
  const lifted = liftedFigure(lift);
  const candidates = html("div", { class: "sg-bar", role: "group", "aria-label": "Which classes compete" });
  assemble(page, lift, numbers);
  page.sliders.after(candidates);
  return { ...page, weights, features, ranking, sure, bar, editor, candidates, lift, lifted };
}

/** One button for each class while candidates are chosen; they outlive a redraw, so that the keyboard's focus is not lost. */
function showChips(page, chips, { among, names, compete }) {
  page.candidates.hidden = !among;
  while (chips.length > names.length) chips.pop().root.remove();
  while (chips.length < names.length) {
    const i = chips.length;
    chips.push(toggle(page.candidates, "", (on) => compete(i, on)));
  }
  for (const [i, chip] of chips.entries()) {
    say(chip.root, names[i]);
    chip.root.setAttribute("aria-label", `${names[i]} competes`);
    chip.set(!among || Boolean(among[i]));
  }
}

const percent = (share) => (share < 0.01 ? "less than 1%" : `${format(100 * share, 0)}%`);

/** What no x of the window exceeds, rounded up; a class dragged towards the others' hull loses this long before it loses its region. */
const howSure = ({ reached, ceiling }, name) =>
  reached > 0.99 ? `Somewhere in this window ${name} gets more than 99%.` : `Wherever x is in this window, ${name} gets at most ${format(Math.ceil(1000 * ceiling) / 10, 1)}%.`;

/** A sentence to follow a colon: only "Every" begins with a small letter then, names stay as they are. */
const lower = (sentence) => (sentence.startsWith("Every") ? sentence[0].toLowerCase() + sentence.slice(1) : sentence);

function drawWeights(page, state, told, name, suspect) {
  const { layer } = state;
  const plane = page.weights;
  const hull = convexHull(layer.points);
  plane.draw("hull", told.hidden ? [] : [svg("path", { d: `${plane.path(hull)}Z`, class: "sg-hull" })]);
  plane.draw(
    "upper",
    layer.biased && !told.hidden
      ? neighbours(layer, told.found).map(([i, j]) => plane.line(layer.points[i], layer.points[j], { class: "sg-upper" }))
      : [],
  );
  const { rivals = [], weights = [] } = suspect >= 0 ? told.found[suspect] : {};
  if (told.pairs) return drawMeeting(plane, state, told);
  const shares = hundredths(weights);
  plane.draw(
    "why",
    rivals.flatMap((i, k) => {
      const [p, q] = [layer.points[suspect], layer.points[i]];
      const middle = [p[0] + 0.55 * (q[0] - p[0]), p[1] + 0.55 * (q[1] - p[1])];
      return [
        plane.line(p, q, { class: "sg-blocking", "stroke-width": 2 + 7 * weights[k], style: `--fill: ${colour(state.who[i])}` }),
        plane.text(middle, format(shares[k]), { dy: 4, class: "sg-text sg-strong" }),
      ];
    }),
  );
}

/** The two sides of the explained pair's proof, as far as they are segments. */
function drawMeeting(plane, state, told) {
  const sides = state.why && told.lost && !told.hidden ? [told.lost.pair, told.lost.why.rivals] : [];
  const edges = sides.flatMap((side, n) => side.flatMap((i, k) => side.slice(k + 1).map((j) => [i, j, n])));
  plane.draw("why", edges.map(([i, j, n]) =>
    plane.line(state.layer.points[i], state.layer.points[j], { class: "sg-blocking", "stroke-width": 5 - 2 * n, style: `--fill: var(${n ? "--sg-soft" : "--sg-alarm"})` }),
  ));
}

/** The class vectors, all of them to be dragged; who does not compete is paler and has no fate. */
function placeClasses(state, told, name, W, b) {
  const centre = [0, 1].map((k) => W.reduce((sum, p) => sum + p[k], 0) / W.length);
  for (const [i, handle] of state.handles.entries()) {
    const verdict = told.found[state.who.indexOf(i)]?.verdict;
    const lost = !told.hidden && !told.pairs && Boolean(verdict) && verdict !== "argmaxable";
    const fate = { argmaxable: ", can win", unargmaxable: ", can never win", tied: ", tied" }[verdict];
    handle.place(W[i], {
      fill: verdict ? colour(i) : "var(--sg-paper)",
      caption: b && b[i] ? `${name(i)} ${b[i] > 0 ? "+" : ""}${format(b[i])}` : name(i),
      ringed: lost,
      away: [W[i][0] - centre[0], W[i][1] - centre[1]],
      label: `class ${name(i)} at ${pair(W[i])}${b ? `, bias ${format(b[i])}` : ""}${!verdict ? ", does not compete" : told.hidden || told.pairs ? "" : fate}`,
    });
    handle.root.classList.toggle("sg-resting", !verdict);
  }
}

/** The layer in space, while it has a bias and that is asked for. */
function drawLift(page, state, name, told = state.told) {
  state.told = told;
  page.lift.hidden = !(state.lift && state.layer.biased && !told.hidden);
  if (page.lift.hidden) return;
  page.lifted.show(state.layer, told.found, { turn: state.turn, name, colour: (i) => colour(state.who[i]) });
}

/** Pairs of classes whose regions touch: the edges of the upper hull of the points (w, b), seen from above. */
function neighbours(layer, found) {
  return found.flatMap((v, t) =>
    v.verdict !== "argmaxable"
      ? []
      : argmaxCell(layer, t, FAR)
          .filter((p) => p[2] > t)
          .map((p) => [t, p[2]]),
  );
}

function drawRegions(page, state, told, name) {
  const plane = page.features;
  const [regions, borders, labels] = [[], [], []];
  say(page.figures[1].firstChild, `Features: which ${told.pairs ? "two come first" : "class wins"} at x`);
  if (told.pairs) return drawPairRegions(plane, state, told, name);
  for (const [t, v] of told.found.entries()) {
    const cell = v.verdict === "argmaxable" && !told.hidden ? argmaxCell(state.layer, t, plane.half) : [];
    if (!cell.length) continue;
    regions.push(svg("path", { d: `${plane.path(cell)}Z`, class: "sg-region", style: `--fill: ${colour(state.who[t])}`, "data-class": state.who[t] }));
    for (const [m, p] of cell.entries()) {
      // each border once, and no border where the window cuts a region off
      if (p[2] > t) borders.push(plane.line(p, cell[(m + 1) % cell.length], { class: "sg-border" }));
    }
    const { area, at } = centroid(cell);
    if (area > 0.004 * plane.half ** 2) labels.push(plane.text(at, name(t), { dy: 5, class: "sg-text sg-strong" }));
  }
  plane.draw("regions", regions, { below: true });
  plane.draw("borders", borders);
  plane.draw("lines", state.lines && !told.hidden ? drawTies(state.layer, plane) : []);
  plane.draw("labels", labels);
}

/** One region for each pair that some x puts first, in a mixture of its colours. */
function drawPairRegions(plane, state, told, name) {
  const cells = told.hidden ? [] : told.pairs.filter(({ why }) => !why).map(({ pair }) => ({ pair, cell: pairCell(state.layer, pair, plane.half) }));
  const seen = cells.filter(({ cell }) => cell.length);
  const mixed = ([i, j]) => `color-mix(in srgb, ${colour(state.who[i])}, ${colour(state.who[j])})`;
  plane.draw("regions", seen.map(({ pair, cell }) => svg("path", { d: `${plane.path(cell)}Z`, class: "sg-region", style: `--fill: ${mixed(pair)}`, "data-pair": pair.map((k) => state.who[k]) })), { below: true });
  plane.draw("borders", seen.map(({ cell }) => svg("path", { d: `${plane.path(cell)}Z`, class: "sg-border sg-pairs" })));
  plane.draw("lines", []);
  plane.draw("labels", seen.flatMap(({ pair, cell }) => {
    const { area, at } = centroid(cell);
    return area > 0.004 * plane.half ** 2 ? [plane.text(at, pair.map(name).join(" "), { dy: 5, class: "sg-text sg-strong" })] : [];
  }));
}

function drawTies(layer, plane) {
  const lines = [];
  for (let j = 0; j < layer.classes; j++) {
    for (let i = 0; i < j; i++) {
      const [p, q] = [layer.points[i], layer.points[j]];
      const side = clip(square(plane.half), [p[0] - q[0], p[1] - q[1], p[2] - q[2]], 1);
      const edge = side.findIndex((v) => v[2] === 1); // the edge that the cut made is the line inside the window
      if (edge >= 0) lines.push(plane.line(side[edge], side[(edge + 1) % side.length], { class: "sg-tie" }));
    }
  }
  return lines;
}

function drawFeature(page, state, name, handle) {
  if (!state.layer) return;
  const { probabilities, order } = evaluate(state.layer, state.x);
  const farthest = state.layer.points[order[0]]; // without biases the logit is how far a class lies in the direction of x
  page.weights.draw("direction", state.layer.biased ? [] : drawFront(page.weights, state.x, farthest));
  const rule = state.layer.biased ? "Biases lift them; dashed: neighbours" : "Farthest in the direction of x wins";
  say(page.figures[0].firstChild, `Class vectors: drag them. ${rule}`);
  handle.place(state.x, {
    fill: "var(--sg-ink)",
    caption: "x",
    label: `feature x at ${pair(state.x)}: ${name(order[0])} scores highest`,
    away: [1, 1],
  });
  const shares = order.map((i) =>
    html("span", {
      style: `flex-grow: ${probabilities[i]}; background: ${colour(state.who[i])}`,
      title: `${name(i)} ${format(probabilities[i])}`,
    }),
  );
  page.bar.replaceChildren(...shares);
  say(
    page.ranking,
    `At x = ${pair(state.x)}: ${order.slice(0, 8).map(name).join(" > ")}${order.length > 8 ? " > …" : ""}; softmax gives ${name(order[0])} ${format(probabilities[order[0]])}`,
  );
}

function tell(page, told, state, name, suspect) {
  say(page.live, told.hidden ? HIDDEN : told.verdict);
  if (told.hidden) return [page.detail, page.plain, page.reason].forEach((line) => say(line, ""));
  if (told.pairs) {
    say(page.detail, told.never);
    say(page.plain, "");
    return say(page.reason, !state.why ? "" : told.lost ? explainPair(told.lost, name) : "Every pair has a region.");
  }
  const { regions, formula, all, special, bounded } = told.counts;
  const number = (value) => value.toLocaleString("en");
  say(
    page.detail,
    `Rankings realised: ${number(regions)}${bounded ? ` (${number(bounded)} on bounded regions)` : ""}. Formula: ${number(formula)}. All orders: ${number(all)}.` +
      (special ? " Fewer than the formula: these vectors are in special position." : ""),
  );
  const winners = told.found.filter(({ verdict }) => verdict === "argmaxable").length;
  const share = regions === all ? "every order" : `${number(regions)} of their ${number(all)} orders, ${percent(regions / all)}`;
  say(page.plain, `In plain words: this layer can give ${winners} of its ${told.found.length} answers, and can rank them in ${share}.`);
  const reasons = [
    state.why ? (suspect >= 0 ? explain(told.found[suspect], suspect, name, state.layer.biased) : "No class is unargmaxable.") : "",
    told.bounded,
  ];
  say(page.reason, reasons.filter(Boolean).join(" "));
}

/** Rows of two numbers, or of three with the bias last, from text that somebody typed. */
export function parseTable(text) {
  const words = text.split("\n").map((line) => line.match(/[^\s,;[\]]+/g) ?? []);
  const rows = words.filter((row) => row.length).map((row) => row.map(Number));
  const biased = rows.length > 0 && rows.every((row) => row.length === 3);
  return [rows.map((row) => (biased ? row.slice(0, 2) : row)), biased ? rows.map((row) => row[2]) : null];
}

export default { render };

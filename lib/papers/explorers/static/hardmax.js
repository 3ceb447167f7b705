// The hardmax explorer (004, equations 1a and 1b): tokens are dragged to where they start, and the layers follow. Token i moves by
// alpha / (1 + alpha) towards the mean of C_i, the tokens farthest in the direction A z_i. A token with C_i = {i} is a leader.
//
// The model holds Z (n pairs, the start), alpha, ratio and angle (A has eigenvalues sqrt(ratio) and 1 / sqrt(ratio), the first along the
// angle, so it is symmetric positive definite by construction), layers, and layer, the one that is shown. While it is hidden (a last
// property), only the start is shown, and whom the selected token looks at: the layers and their leaders wait for a guess.

import { convexHull } from "./geometry.js";
import { guide } from "./guide.js";
import {
  Handle,
  HIDDEN,
  Plane,
  assemble,
  beckon,
  button,
  colour,
  drawFront,
  format,
  html,
  matchHandles,
  moreAndFewer,
  nextPlace,
  presetMenu,
  problemWithPoints,
  say,
  scaffold,
  slider,
  subscript,
  svg,
  watch,
  writer,
} from "./stage.js";

const MOST_TOKENS = 16;
const TIE_TOLERANCE = 1e-12; // relative, as in papers.hardmax.dynamics
const MISSIONS = [
  ["Stop a leader from emerging: everybody who leads does so from layer 0 on.", ({ leads }) => leads.some((first) => first === 0) && leads.every((first) => first <= 0)],
  ["Have four leaders or more.", ({ leads }) => leads.filter((first) => first >= 0).length >= 4],
  ["Find a token that ends up looking at two others alike.", ({ states }) => states.at(-1).C.some((chosen) => chosen.length === 2)],
];
const STEP_PAUSE = 450; // milliseconds between two layers while playing

export function scoreMatrix(ratio, angle) {
  const [c, s] = [Math.cos((angle * Math.PI) / 180), Math.sin((angle * Math.PI) / 180)];
  const [u, v] = [Math.sqrt(ratio), 1 / Math.sqrt(ratio)];
  return [[u * c * c + v * s * s, (u - v) * c * s], [(u - v) * c * s, u * s * s + v * c * c]];
}

/** The question A z of a token, and its scores <A z, z_j>. */
function ask(A, z, Z) {
  const query = A.map((row) => row[0] * z[0] + row[1] * z[1]);
  return { query, scores: Z.map((p) => query[0] * p[0] + query[1] * p[1]) };
}

/** C_i for every token: the tokens whose score <A z_i, z_j> is within the tolerance of the largest. */
export function attractors(Z, A) {
  const radius = Math.max(...Z.map((z) => Math.hypot(...z)));
  return Z.map((z) => {
    const { query, scores } = ask(A, z, Z);
    const least = Math.max(...scores) - TIE_TOLERANCE * Math.hypot(...query) * radius;
    return scores.flatMap((score, j) => (score >= least ? [j] : []));
  });
}

/** The mean that each token moves towards: of C_i, or at a temperature T > 0 of all tokens with the weights softmax(<A z_i, z_j> / T). */
function attractedTo(Z, A, C, temperature) {
  return Z.map((z, i) => {
    const { scores } = ask(A, z, Z);
    const top = Math.max(...scores);
    const weights = temperature > 0 ? scores.map((s) => Math.exp((s - top) / temperature)) : Z.map((_, j) => Number(C[i].includes(j)));
    const total = weights.reduce((sum, w) => sum + w, 0);
    return [0, 1].map((axis) => Z.reduce((sum, p, j) => sum + weights[j] * p[axis], 0) / total);
  });
}

/** All states of so many layers, with the sets C_i of each state; softmax layers where the temperature is not 0. */
export function trajectory(Z, A, alpha, layers, temperature = 0) {
  const states = [{ Z, C: attractors(Z, A) }];
  for (let k = 0; k < layers; k++) {
    const { Z: now, C } = states[k];
    const means = attractedTo(now, A, C, temperature);
    const next = now.map((z, i) => z.map((value, axis) => value + (alpha / (1 + alpha)) * (means[i][axis] - value)));
    states.push({ Z: next, C: attractors(next, A) });
  }
  return states;
}

/** The first layer at which each token leads, or -1: a leader once is a leader always, though rounding may hide it later. */
export function firstLeads(states) {
  return states[0].Z.map((_, i) => states.findIndex(({ C }) => C[i].length === 1 && C[i][0] === i));
}

export function render({ model, el }) {
  const page = layOut(el);
  const put = writer(model);
  const state = { handles: [], selected: MOST_TOKENS, timer: null }; // the last token, until one is selected
  const stopPlaying = () => {
    clearInterval(state.timer);
    state.timer = null;
    play.textContent = "Play";
  };
  const goTo = (layer) => put({ layer: Math.max(0, Math.min(model.get("layers"), layer)) });

  const presets = presetMenu(page, model, (changes) => {
    help.rest();
    stopPlaying();
    state.selected = MOST_TOKENS;
    put({ ...changes, layer: 0, temperature: 0 });
  });
  const back = button(page.sliders, "Back", () => goTo(model.get("layer") - 1), { "aria-label": "One layer back" });
  const step = button(page.sliders, "Step", () => goTo(model.get("layer") + 1), { "aria-label": "Step one layer on" });
  const play = button(page.sliders, "Play", () => {
    if (state.timer) return stopPlaying();
    if (model.get("layer") >= model.get("layers")) goTo(0);
    play.textContent = "Pause";
    state.timer = setInterval(() => {
      if (model.get("layer") >= model.get("layers")) stopPlaying();
      else goTo(model.get("layer") + 1);
    }, STEP_PAUSE);
  });
  const resize = (change) => {
    const Z = change(model.get("Z"));
    if (Z.length > 0 && Z.length <= MOST_TOKENS) put({ Z });
  };
  moreAndFewer(
    page.buttons,
    "token",
    [() => resize((Z) => [...Z, nextPlace(Z.length, 1.25)]), () => resize((Z) => Z.slice(0, -1))],
    ["Add a token", "Remove the last token"],
  );
  const layer = slider(page.sliders, { label: "layer", min: 0, max: 1, step: 1, input: goTo });
  const alpha = slider(page.sliders, { label: "α", min: -4, max: 4, step: 0.25, input: (value) => put({ alpha: 2 ** value }) });
  const ratio = slider(page.more, {
    label: "stretch of A",
    min: 0,
    max: 4,
    step: 0.25,
    input: (value) => put({ ratio: 2 ** value }),
  });
  const heat = slider(page.more, {
    label: "temperature",
    min: 0,
    max: 3,
    step: 1 / 16,
    input: (value) => put({ temperature: value }),
  });
  const angle = slider(page.more, { label: "angle of A", min: 0, max: 180, step: 5, input: (value) => put({ angle: value }) });

  const help = guide(
    page,
    [
      "Hollow points are where tokens start; drag them. Solid ones are where they have got to; stars lead.",
      "One row for each token, one column for each layer: the colour of whom it follows.",
      "Step goes one layer on; Play goes on by itself.",
      "How far a step goes, how A stretches the question, and the temperature: 0 is hardmax.",
    ],
    MISSIONS,
  );

  function draw() {
    const [Z, K] = ["Z", "layers"].map((key) => model.get(key));
    const hidden = Boolean(model.get("hidden"));
    const shown = hidden ? 0 : Math.min(model.get("layer"), K);
    const T = model.get("temperature");
    const numbers = ["alpha", "ratio", "angle", "temperature"].map((key) => model.get(key));
    const problem =
      problemWithPoints("Z", Z, 1, MOST_TOKENS) ||
      (numbers.every(Number.isFinite) && numbers[0] > 0 && numbers[1] > 0 && T >= 0 ? "" : "alpha and ratio must be positive, temperature not negative, angle finite.");
    say(page.message, problem);
    if (problem) return; // the last good picture stays
    state.selected = Math.min(state.selected, Z.length - 1);
    const A = scoreMatrix(model.get("ratio"), model.get("angle"));
    const states = trajectory(Z, A, model.get("alpha"), K, T);
    const leads = hidden || T > 0 ? Z.map(() => -1) : firstLeads(states); // nobody is left alone while all are looked at
    matchHandles(state.handles, Z.length, (i) => {
      const move = (at) => put({ Z: model.get("Z").map((z, k) => (k === i ? at : z)) });
      const handle = new Handle(page.plane, { name: `token-${i}`, move, select: () => ((state.selected = i), draw()) });
      handle.root.classList.add("sg-start");
      return handle;
    });
    drawTrails(page.plane, states, shown);
    drawTokens(page.plane, state, states, leads, shown, hidden);
    drawChoice(page.plane, states[shown], A, state.selected);
    if (hidden) page.timeline.replaceChildren();
    else drawTimeline(page, states, leads, shown);
    if (hidden) [page.live, page.detail].forEach((line, k) => say(line, k ? "" : HIDDEN));
    else if (T > 0) tellHeat(page, states, shown, T);
    else tell(page, states, leads, shown, state.selected);
    help.check(hidden ? null : { leads, states });
    for (const control of [back, step, play, layer.root]) control.hidden = hidden;
    presets.hide(hidden);
    layer.control.max = K;
    layer.set(shown, `${shown} of ${K}`);
    alpha.set(Math.log2(model.get("alpha")), format(model.get("alpha")));
    heat.set(T, T ? format(T) : "0: hardmax");
    ratio.set(Math.log2(model.get("ratio")), `${format(model.get("ratio"), model.get("ratio") < 10 ? 1 : 0)} : 1`);
    angle.set(model.get("angle"), `${format(model.get("angle"), 0)}°`);
  }

  const stop = watch(model, ["Z", "alpha", "ratio", "angle", "temperature", "layer", "layers", "hidden"], draw);
  draw();
  beckon(model, page.plane, model.get("Z").at(-1), [1, 1]);
  return () => (stopPlaying(), stop());
}

function layOut(el) {
  const page = scaffold(el, "Hardmax explorer", [
    "Hollow: where the tokens start (drag). Solid: where they are",
    "Whom each token follows, layer by layer; ★ leads",
  ]);
  const [left, right] = page.figures;
  const plane = new Plane(left, {
    half: 3,
    label: "Tokens. Tab selects one, arrow keys move its start, Shift makes the steps finer.",
  });
  const timeline = html("div");
  right.append(timeline);
  assemble(page);
  return { ...page, plane, timeline };
}

const name = (i) => subscript("z", i + 1);
const leading = (leads, i, layer) => leads[i] >= 0 && leads[i] <= layer;

function drawTrails(plane, states, shown) {
  plane.draw("hull", [svg("path", { d: `${plane.path(convexHull(states[shown].Z))}Z`, class: "sg-hull" })]);
  const steps = states.slice(0, shown + 1);
  plane.draw(
    "trails",
    states[0].Z.flatMap((_, i) => [
      svg("path", { d: plane.path(steps.map(({ Z }) => Z[i])), class: "sg-trail", style: `--fill: ${colour(i)}` }),
      ...steps.slice(1, -1).map(({ Z }) => plane.circle(Z[i], 2.5, { class: "sg-step", style: `--fill: ${colour(i)}` })),
    ]),
  );
}

function drawTokens(plane, state, states, leads, shown, hidden) {
  const now = states[shown].Z;
  plane.draw(
    "tokens",
    now.map((z, i) =>
      leading(leads, i, shown)
        ? svg("path", { d: star(plane.x(z[0]), plane.y(z[1]), 13), class: "sg-star", style: `--fill: ${colour(i)}` })
        : plane.circle(z, 7, { class: "sg-token", style: `--fill: ${colour(i)}` }),
    ),
    { above: true },
  );
  for (const [i, handle] of state.handles.entries()) {
    const start = states[0].Z[i];
    const role = leading(leads, i, shown) ? "a leader" : `follows ${states[shown].C[i].map(name).join(", ")}`;
    handle.place(start, {
      fill: colour(i),
      caption: name(i),
      away: start,
      label: `token ${name(i)} starts at (${format(start[0])}, ${format(start[1])})${hidden ? "" : `, at layer ${shown} ${role}`}`,
    });
  }
}

function star(x, y, r) {
  const corner = (k) =>
    `${x + (k % 2 ? 0.45 : 1) * r * Math.sin((k * Math.PI) / 5)} ${y - (k % 2 ? 0.45 : 1) * r * Math.cos((k * Math.PI) / 5)}`;
  return `M${Array.from({ length: 10 }, (_, k) => corner(k)).join("L")}Z`;
}

/** The selected token's question A z_i, and the line across it beyond which nobody lies: the tokens on it are C_i. */
function drawChoice(plane, { Z, C }, A, i) {
  const { query } = ask(A, Z[i], Z);
  const front = drawFront(plane, query, Z[C[i][0]]);
  if (!front.length) return plane.draw("choice", []);
  const [u, v] = query.map((value) => value / Math.hypot(...query));
  const middle = (Z[C[i][0]][0] * u + Z[C[i][0]][1] * v) / 2;
  const label = { dx: 18 * Math.abs(v), dy: 5 + 14 * Math.abs(u), class: "sg-text sg-small" };
  plane.draw("choice", [
    ...front,
    ...C[i].map((j) => plane.circle(Z[j], 17, { class: "sg-chosen" })),
    plane.text([middle * u, middle * v], `A ${name(i)}`, label),
  ]);
}

function drawTimeline(page, states, leads, shown) {
  const [cell, label] = [26, 34];
  const [width, height] = [label + cell * states.length, cell * (states[0].Z.length + 1)];
  const root = svg("svg", {
    viewBox: `0 0 ${width} ${height}`,
    class: "sg-chart",
    role: "img",
    "aria-label": describeLeads(leads, states.length - 1),
  });
  root.append(svg("rect", { x: label + cell * shown, y: 0, width: cell, height, class: "sg-now", rx: 5 }));
  states.forEach(({ C }, k) => {
    const x = label + cell * (k + 0.5);
    root.append(svg("text", { x, y: height - 8, class: "sg-tick", "text-anchor": "middle" }, String(k)));
    C.forEach((chosen, i) => {
      const y = cell * (i + 0.5);
      if (leading(leads, i, k)) root.append(svg("path", { d: star(x, y, 10), class: "sg-star", style: `--fill: ${colour(i)}` }));
      else
        chosen.slice(0, 3).forEach((j, m) =>
          root.append(
            svg("circle", {
              cx: x + 6 * (m - (Math.min(chosen.length, 3) - 1) / 2),
              cy: y,
              r: 5,
              class: "sg-token",
              style: `--fill: ${colour(j)}`,
            }),
          ),
        );
    });
  });
  states[0].Z.forEach((_, i) => root.append(svg("text", { x: 4, y: cell * (i + 0.5) + 5, class: "sg-text" }, name(i))));
  page.timeline.replaceChildren(root);
}

function describeLeads(leads, layers) {
  const found = leads.flatMap((first, i) => (first >= 0 ? [`${name(i)} from layer ${first}`] : []));
  return found.length ? `Leaders within ${layers} layers: ${found.join(", ")}` : `No leader within ${layers} layers`;
}

function tellHeat(page, states, shown, temperature) {
  const spread = Math.max(...states[shown].Z.flatMap((p) => states[shown].Z.map((q) => Math.hypot(p[0] - q[0], p[1] - q[1]))));
  say(page.live, `Softmax at temperature ${format(temperature)}: each token looks at all, most at the farthest in its direction.`);
  say(page.detail, `At layer ${shown} the tokens lie up to ${format(spread)} apart. Cool down to 0, and each looks at one: hardmax, with leaders.`);
}

function tell(page, states, leads, shown, selected) {
  const names = leads.flatMap((_, i) => (leading(leads, i, shown) ? [name(i)] : []));
  say(
    page.live,
    names.length
      ? `${names.length === 1 ? "Leader" : "Leaders"} at layer ${shown}: ${names.join(", ")}.`
      : `No leader yet at layer ${shown}.`,
  );
  const chosen = states[shown].C[selected];
  const own = chosen.length === 1 && chosen[0] === selected;
  const target = own
    ? "itself only: it leads and stays"
    : chosen
        .filter((j) => j !== selected || chosen.length > 1)
        .map(name)
        .join(", ");
  const before = states[Math.max(0, shown - 1)].Z;
  const moved = Math.max(...states[shown].Z.map((z, i) => Math.hypot(z[0] - before[i][0], z[1] - before[i][1])));
  say(
    page.detail,
    `${name(selected)} looks at ${target}.${shown ? ` The last layer moved no token by more than ${format(moved, 3)}.` : ""}`,
  );
}

export default { render };

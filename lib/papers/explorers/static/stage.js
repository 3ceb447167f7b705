// What the explorers share on the page: a plane drawn in SVG with points that mouse, finger and keyboard can drag, sliders,
// buttons, and one line of text that screen readers announce. SVG rather than canvas: crisp at any size, and every mark is an
// element with a name, for people who use a screen reader and for tests.

const SVG = "http://www.w3.org/2000/svg";
export const GRID = 1 / 64; // one pixel, about; dyadic, so that points which look collinear on the grid are so, exactly
const ARROW_STEP = 1 / 16;
const SIDE = 420; // side of a plane in its own units; the page scales it

export const snap = (value) => Math.round(value / GRID) * GRID;
export const format = (value, digits = 2) => {
  const text = value.toFixed(digits);
  return Number(text) === 0 ? (0).toFixed(digits) : text.replace("-", "−"); // no "-0.00", and a minus as wide as a plus
};

/** A place in the picture, to a tenth of its unit. One move of a token asks for thousands, so those inside the picture are written once and kept. */
function tenths(value) {
  const all = Math.round(10 * value);
  return all >= 0 && all <= 10 * SIDE ? (WRITTEN[all] ??= String(all / 10)) : String(all / 10);
}
const WRITTEN = [];

export const subscript = (letter, number) => letter + String(number).replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]);

/** Where one more than `count` points goes: the golden angle spreads them. */
export const nextPlace = (count, radius) => [snap(radius * Math.cos(2.4 * count)), snap(radius * Math.sin(2.4 * count))];

/** One sentence about what is wrong with points of the plane, or "". */
export function problemWithPoints(name, points, least, most) {
  if (!Array.isArray(points) || points.length < least)
    return `${name} needs at least ${least} token${least > 1 ? "s" : ""}: one pair of numbers each.`;
  if (points.length > most) return `${name} has ${points.length} tokens; the explorer shows at most ${most}.`;
  const bad = points.findIndex((p) => !Array.isArray(p) || p.length !== 2 || !p.every(Number.isFinite));
  return bad < 0 ? "" : `Token ${bad + 1} of ${name} must be a pair of finite numbers.`;
}

/** An HTML element; properties go to the element, `children` are appended. */
export function html(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** An SVG element. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** The lines of text and the rows of controls that every explorer has, still empty; `two` are the titles of its two figures. */
export function scaffold(el, label, two) {
  el.classList.add("softgeom");
  el.dataset.lmSuppressShortcuts = "true"; // in JupyterLab arrow keys would otherwise move from cell to cell
  const line = (name, attributes = {}) => html("p", { class: `sg-${name}`, ...attributes });
  return {
    el,
    buttons: html("div", { class: "sg-bar", role: "group", "aria-label": label }),
    sliders: html("div", { class: "sg-bar" }),
    note: line("note"),
    live: line("live", { "aria-live": "polite" }),
    detail: line("detail"),
    plain: line("plain"), // the same in plain words
    reason: line("reason"),
    more: html("details", { class: "sg-more" }, html("summary", {}, "Presets, controls, missions")),
    message: line("message", { role: "alert" }),
    figures: two.map((title) => html("figure", {}, html("figcaption", {}, title))),
  };
}

/** Put the page together, the picture first: one line, the two figures side by side, sliders, words; all else is folded away. */
export function assemble(page, ...folded) {
  const pair = html("div", { class: "sg-pair" }, ...page.figures);
  page.more.append(page.buttons, page.note, ...folded);
  page.el.replaceChildren(page.live, page.message, pair, page.sliders, page.reason, page.detail, page.plain, page.more);
}

/** A hand that shows the first gesture, from one place so far right and up, until somebody makes one. */
export function beckon(model, plane, from, [right, up]) {
  if (model.get("hidden") || from?.length !== 2 || !from.every(Number.isFinite)) return; // or a state that is refused in a sentence
  const way = `--dx: ${plane.x(right) - plane.x(0)}px; --dy: ${plane.y(up) - plane.y(0)}px`;
  const hand = svg("g", { class: "sg-ghost", style: way, "aria-hidden": "true" }, svg("path", { d: HAND, transform: `translate(${plane.place(from)})` }));
  plane.root.append(hand);
  for (const kind of ["pointerdown", "keydown"]) plane.root.addEventListener(kind, () => hand.remove(), { once: true, capture: true });
}
const HAND = "M0 0c-2 0-3 1-3 3v12l-4-3c-2-1-4 1-3 3l7 11h10c3-4 4-7 4-12 0-3-3-4-8-5V3c0-2-1-3-3-3z";

/** A square window onto the plane: |x_1|, |x_2| <= half, the second axis upwards. */
export class Plane {
  constructor(parent, { half = 3, label, axes = ["", ""] }) {
    this.half = half;
    this.axes = axes;
    this.root = svg("svg", { viewBox: `0 0 ${SIDE} ${SIDE}`, class: "sg-plane", role: "group", "aria-label": label });
    this.frame = svg("g", { class: "sg-frame", "aria-hidden": "true" });
    this.root.append(this.frame);
    this.drawn = new Map();
    this.handles = svg("g", { class: "sg-handles" });
    this.root.append(this.handles);
    parent.append(this.root);
    this.drawFrame();
  }

  x = (value) => (SIDE / 2) * (1 + value / this.half);
  y = (value) => (SIDE / 2) * (1 - value / this.half);
  place(p) {
    return `${tenths(this.x(p[0]))} ${tenths(this.y(p[1]))}`;
  }

  path(points) {
    let drawn = "";
    for (let k = 0; k < points.length; k++) drawn += (k ? "L" : "M") + this.place(points[k]);
    return drawn;
  }

  /** The path of a curve without the pieces that lie outside of the window, both ends beyond the same side. */
  visible(points) {
    const edge = 1.02 * this.half; // a stroke is wider than its curve
    const beyond = (a, b) => (a > edge && b > edge) || (a < -edge && b < -edge);
    let drawn = "";
    for (let k = 1, pen = false; k < points.length; k++) {
      const [p, q] = [points[k - 1], points[k]];
      const outside = beyond(p[0], q[0]) || beyond(p[1], q[1]);
      if (!outside) drawn += pen ? "L" + this.place(q) : `M${this.place(p)}L${this.place(q)}`;
      pen = !outside;
    }
    return drawn;
  }

  /** The position of a pointer event in the plane, kept inside the window. */
  locate(event) {
    const box = this.root.getBoundingClientRect();
    const clamp = (value) => Math.max(-1, Math.min(1, value)) * this.half;
    return [clamp((2 * (event.clientX - box.left)) / box.width - 1), clamp(1 - (2 * (event.clientY - box.top)) / box.height)];
  }

  setHalf(half) {
    this.half = half;
    this.drawFrame();
  }

  drawFrame() {
    const step = this.half > 4 ? 2 ** Math.floor(Math.log2(this.half)) / 2 : 1;
    const marks = [];
    for (let value = step; value < this.half; value += step) {
      for (const at of [value, -value]) {
        marks.push(svg("path", { d: `M${this.x(at)} 0V${SIDE}M0 ${this.y(at)}H${SIDE}`, class: "sg-grid" }));
        marks.push(svg("text", { x: this.x(at), y: SIDE - 5, class: "sg-tick", "text-anchor": "middle" }, format(at, 0)));
      }
    }
    const axes = svg("path", { d: `M${SIDE / 2} 0V${SIDE}M0 ${SIDE / 2}H${SIDE}`, class: "sg-axis" });
    const names = [
      svg("text", { x: SIDE - 8, y: SIDE / 2 - 8, class: "sg-axis-name", "text-anchor": "end" }, this.axes[0]),
      svg("text", { x: SIDE / 2 + 9, y: 15, class: "sg-axis-name" }, this.axes[1]),
    ];
    this.frame.replaceChildren(...marks, axes, ...names);
  }

  /** Replace everything drawn under this name; names stack in the order of their first use, under the grid or above the handles if asked. */
  draw(name, elements, { below = false, above = false } = {}) {
    if (!this.drawn.has(name)) {
      const group = svg("g", { class: `sg-layer sg-${name}` });
      this.root.insertBefore(group, below ? this.frame : above ? null : this.handles);
      this.drawn.set(name, group);
    }
    this.drawn.get(name).replaceChildren(...elements);
  }

  /** A text with a halo in the page's colour, readable on any region; kept inside the window. */
  text(p, content, options = {}) {
    const { dx = 0, dy = 0, anchor = "middle", ...attributes } = options;
    const room = 4 + (anchor === "middle" ? 3.6 : 0) * content.length;
    const x = Math.max(room, Math.min(SIDE - room, this.x(p[0]) + dx));
    const y = Math.max(16, Math.min(SIDE - 8, this.y(p[1]) + dy));
    return svg("text", { x, y, "text-anchor": anchor, class: "sg-text", ...attributes }, content);
  }

  line(p, q, attributes = {}) {
    return svg("line", { x1: this.x(p[0]), y1: this.y(p[1]), x2: this.x(q[0]), y2: this.y(q[1]), ...attributes });
  }

  circle(p, r, attributes = {}) {
    return svg("circle", { cx: this.x(p[0]), cy: this.y(p[1]), r, ...attributes });
  }
}

/** The direction `query` from the origin, and the line across it on which the farthest of some points lie: nobody is beyond. */
export function drawFront(plane, query, farthest) {
  const length = Math.hypot(...query);
  if (length === 0) return [];
  const [u, v] = query.map((value) => value / length);
  const far = farthest[0] * u + farthest[1] * v;
  const across = (s) => [far * u - s * v, far * v + s * u];
  const [x, y] = [plane.x(far * u), plane.y(far * v)];
  const [ahead, aside] = [[-11 * u, 11 * v], [5 * v, 5 * u]]; // in the picture, whose second axis points down
  const head = [1, -1].map((side) => `${x + ahead[0] + side * aside[0]} ${y + ahead[1] + side * aside[1]}`);
  return [
    plane.line(across(-99), across(99), { class: "sg-front" }),
    plane.line([0, 0], [far * u, far * v], { class: "sg-question" }),
    ...(far > 0 ? [svg("path", { d: `M${x} ${y}L${head.join("L")}Z`, class: "sg-head" })] : []),
  ];
}

/** A point that can be dragged with mouse, finger, and arrow keys (Shift makes the steps finer).
 *
 * `move(position)` is told where the point should go; what the page shows comes back through `place`. */
export class Handle {
  constructor(plane, { name, shape = "circle", move, select = () => {}, press = () => false }) {
    this.plane = plane;
    this.at = [0, 0];
    const mark = shape === "diamond" ? svg("path", { d: "M0-10L10 0L0 10L-10 0Z" }) : svg("circle", { r: 9 });
    mark.setAttribute("class", "sg-mark");
    // The unseen circle is what a finger meets: 44 pixels across. The ring shows the keyboard's focus.
    this.root = svg(
      "g",
      { class: "sg-handle", tabindex: 0, role: "button", "aria-roledescription": "draggable point", "data-name": name },
      svg("circle", { r: 22, class: "sg-touch" }),
      svg("circle", { r: 14, class: "sg-focus" }),
      mark,
    );
    this.ring = svg("circle", { r: 14.5, class: "sg-ring" });
    this.caption = svg("text", { class: "sg-text sg-caption", "aria-hidden": "true" });
    this.root.append(this.ring, this.caption);
    plane.handles.append(this.root);
    this.root.addEventListener("focus", select);
    this.root.addEventListener("pointerdown", (event) => {
      event.preventDefault(); // no text selection while a point is held
      this.root.setPointerCapture(event.pointerId);
      this.root.classList.add("sg-held");
      this.root.focus({ preventScroll: true });
      const [x, y] = plane.locate(event);
      this.offset = [this.at[0] - x, this.at[1] - y]; // the point does not jump to where it was grabbed
    });
    // CSS's touch-action has no effect inside an SVG: without this the page would scroll away with the point.
    this.root.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
    this.root.addEventListener("pointermove", (event) => {
      if (!this.root.hasPointerCapture(event.pointerId)) return;
      const [x, y] = plane.locate(event);
      move(this.inside([x + this.offset[0], y + this.offset[1]]));
    });
    this.root.addEventListener("lostpointercapture", () => this.root.classList.remove("sg-held"));
    this.root.addEventListener("keydown", (event) => {
      const direction = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (event.ctrlKey || event.metaKey || event.altKey || !(direction || press(event))) return;
      event.preventDefault(); // the page does not scroll, and JupyterLab's own shortcuts do not fire
      event.stopPropagation();
      const step = event.shiftKey ? GRID : ARROW_STEP * Math.max(1, 2 ** Math.floor(Math.log2(plane.half / 3)));
      if (direction) move(this.inside(this.at.map((value, k) => value + step * direction[k])));
    });
  }

  inside(p) {
    const limit = this.plane.half - this.plane.half / 40;
    return p.map((value) => snap(Math.max(-limit, Math.min(limit, value))));
  }

  place(at, { fill, caption, label, ringed = false, away = [0, 1] }) {
    this.at = at;
    this.root.setAttribute("transform", `translate(${this.plane.x(at[0])} ${this.plane.y(at[1])})`);
    this.root.style.setProperty("--fill", fill);
    this.root.setAttribute("aria-label", label);
    this.root.classList.toggle("sg-ringed", ringed);
    const length = Math.hypot(...away) || 1; // the caption stands on the outer side of its point
    const [dx, dy] = [away[0] / length, -away[1] / length];
    this.caption.textContent = caption;
    this.caption.setAttribute("text-anchor", dx > 0.4 ? "start" : dx < -0.4 ? "end" : "middle");
    this.caption.setAttribute("x", 18 * dx);
    this.caption.setAttribute("y", 22 * dy + 5);
  }

  remove() {
    this.root.remove();
  }
}

/** As many handles as points; those that stay outlive a redraw, so that a drag or the keyboard's focus is not lost. */
export function matchHandles(handles, count, make) {
  while (handles.length > count) handles.pop().remove();
  while (handles.length < count) handles.push(make(handles.length));
}

/** A labelled slider; `set(value, text)` shows a value without telling anybody. */
export function slider(parent, { label, min, max, step, input }) {
  const output = html("output", { class: "sg-value" });
  const control = html("input", {
    type: "range",
    min,
    max,
    step,
    "aria-label": label,
    oninput: () => input(Number(control.value)),
  });
  const title = html("span", {}, label);
  const root = html("label", { class: "sg-slider" }, title, control, output);
  parent.append(root);
  const set = (value, text, name = label) => {
    control.value = value;
    output.textContent = text;
    control.setAttribute("aria-valuetext", text);
    control.setAttribute("aria-label", name);
    title.textContent = name;
  };
  return { root, control, set };
}

export function button(parent, label, click, attributes = {}) {
  const root = html("button", { type: "button", class: "sg-button", onclick: click, ...attributes }, label);
  parent.append(root);
  return root;
}

/** A button that stays down; `set(on)` shows its state. */
export function toggle(parent, label, click, attributes = {}) {
  const root = button(parent, label, () => click(root.getAttribute("aria-pressed") !== "true"), {
    "aria-pressed": "false",
    ...attributes,
  });
  return { root, set: (on) => root.setAttribute("aria-pressed", String(on)) };
}

/** What stands in the place of a verdict while the figure is hidden. */
export const HIDDEN = "Your turn first: what this figure counts and concludes shows once you have answered.";

/** The menu of presets, if there are any: shows the note of the chosen one and hands on what it sets. Their names tell: `hide` hides them. */
export function presetMenu(page, model, take) {
  const presets = model.get("presets");
  const options = presets.map(({ name }, i) => html("option", { value: i }, name));
  const menu = html("select", { "aria-label": "Presets" }, html("option", { value: -1 }, "Presets"), ...options);
  menu.addEventListener("change", () => {
    if (menu.value < 0) return;
    const { name, note, ...changes } = presets[menu.value];
    say(page.note, note);
    take(changes);
  });
  page.buttons.append(menu);
  return { hide: (hidden) => (menu.hidden = hidden || presets.length === 0) };
}

/** Two buttons that make things more and fewer. */
export function moreAndFewer(parent, noun, [more, fewer], [moreLabel, fewerLabel]) {
  button(parent, `+ ${noun}`, more, { "aria-label": moreLabel });
  button(parent, `− ${noun}`, fewer, { "aria-label": fewerLabel });
}

/** Write text only when it changed: a live region speaks at every write. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Listen to several properties of the model; draw once, however many of them change together. */
export function watch(model, names, draw) {
  let scheduled = false;
  const schedule = () => {
    if (!scheduled) queueMicrotask(() => ((scheduled = false), draw()));
    scheduled = true;
  };
  for (const name of names) model.on(`change:${name}`, schedule);
  return () => names.forEach((name) => model.off(`change:${name}`, schedule));
}

/** A function that sets several properties of the model and tells the kernel at once: held back here, a state would lose to the echo of the one before; ipywidgets waits for a busy kernel. */
export function writer(model) {
  return (changes) => {
    for (const [name, value] of Object.entries(changes)) model.set(name, value);
    model.save_changes();
  };
}

/** The colour of class i: eight that anybody can tell apart, then the same eight paler, then darker. */
export function colour(i) {
  const own = `var(--sg-class-${i % 8})`;
  return i < 8 ? own : `color-mix(in srgb, ${own} 45%, var(${i < 16 ? "--sg-paper" : "--sg-ink"}))`;
}

// What the static pages need besides an explorer: a model without a kernel, files to keep, and manners inside an iframe.

/** The four methods of a widget's model that the explorers use. */
export class PageModel {
  constructor(state) {
    this.state = state;
    this.listeners = new Map();
  }

  get = (name) => this.state[name];

  set(name, value) {
    this.state[name] = value;
    for (const listener of this.listeners.get(`change:${name}`) ?? []) listener();
  }

  save_changes() {} // nobody to tell

  on(event, listener) {
    this.listeners.set(event, [...(this.listeners.get(event) ?? []), listener]);
  }

  off(event, listener) {
    this.listeners.set(event, (this.listeners.get(event) ?? []).filter((known) => known !== listener));
  }
}

/** Whether a value from an address has the form of the one that it replaces: finite numbers in lists of the same depth, not too many. */
export function fits(value, start) {
  if (Array.isArray(start))
    return Array.isArray(value) && value.length <= 64 && start.length > 0 && value.every((part) => fits(part, start[0]));
  return Number.isFinite(value) && Math.abs(value) <= 1e6;
}

/** What the address says behind its #, of these properties, as far as it can be shown: a link holds a figure as somebody left it. */
export function stateInAddress(hash, start, names) {
  let said = null;
  try {
    said = JSON.parse(decodeURIComponent(hash.slice(1)));
  } catch {
    return {}; // no state: a theme, or nothing
  }
  if (said === null || typeof said !== "object") return {};
  const kept = names.filter((name) => name in said && fits(said[name], start[name] ?? [0]));
  return Object.fromEntries(kept.map((name) => [name, said[name]]));
}

/** Write these properties behind the # of the address whenever they change, in a page of its own; an iframe's address is its theme. */
export function keepInAddress(model, names) {
  if (parent !== window) return;
  for (const [name, value] of Object.entries(stateInAddress(location.hash, model.state, names))) model.set(name, value);
  let timer = null;
  const write = () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      const told = names.filter((name) => model.get(name) !== null);
      const state = Object.fromEntries(told.map((name) => [name, model.get(name)]));
      history.replaceState(null, "", `#${encodeURIComponent(JSON.stringify(state))}`);
    }, 250);
  };
  for (const name of names) model.on(`change:${name}`, write);
}

/** Let the reader keep this as a file. */
export function offer(download, content, type = "") {
  const href = URL.createObjectURL(new Blob([content], { type }));
  Object.assign(document.createElement("a"), { href, download }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}

/** Take the theme that stands behind the # of the address, and tell the page around an iframe how high this one is. */
export function embed() {
  const theme = () => {
    const asked = location.hash.slice(1);
    if (asked === "light" || asked === "dark") document.documentElement.dataset.theme = asked;
  };
  theme();
  addEventListener("hashchange", theme);
  if (parent === window) return;
  document.documentElement.dataset.framed = ""; // the page around has the heading
  const tell = () =>
    parent.postMessage({ softgeomHeight: Math.ceil(document.querySelector("main").getBoundingClientRect().height) }, "*");
  new ResizeObserver(tell).observe(document.querySelector("main"));
}

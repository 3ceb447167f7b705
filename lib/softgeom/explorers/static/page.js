// What the static pages need besides an explorer: a model without a kernel, and manners inside an iframe.

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

/** Take the theme that stands behind the # of the address, and tell the page around an iframe how high this one is. */
export function embed() {
  const theme = () => {
    const asked = location.hash.slice(1);
    if (asked === "light" || asked === "dark") document.documentElement.dataset.theme = asked;
  };
  theme();
  addEventListener("hashchange", theme);
  if (parent === window) return;
  const tell = () =>
    parent.postMessage({ softgeomHeight: Math.ceil(document.querySelector("main").getBoundingClientRect().height) }, "*");
  new ResizeObserver(tell).observe(document.querySelector("main"));
}

// A model without a kernel: the four methods that the explorers use, for the static pages.

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

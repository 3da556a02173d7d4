// Elements, numbers and the box that follows the pointer. Text is only ever set as text, never as markup.
const SPACE = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

const html = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
const svg = (name, attributes, ...children) => fill(document.createElementNS(SPACE, name), attributes, children);

const colourClass = (number) => (number === null ? "grey" : `colour${number}`);
const short = (value) => Math.round(value * 100) / 100;

// About `count` round steps that cover the range; a single value has a range of its own.
function steps(low, high, count, least = 0) {
  const span = high - low || Math.abs(high) || 1;
  const power = 10 ** Math.floor(Math.log10(span / count));
  const step = Math.max(least, power * [1, 2, 5, 10].find((factor) => factor * power * count >= span * 0.999));
  const places = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const ticks = [];
  for (let number = Math.ceil(low / step - 1e-9); number * step <= high + step * 1e-9; number += 1)
    ticks.push(number * step || 0);
  return { ticks, places };
}

// Powers of ten, or with few of them also 2 and 5 times these.
function powers(low, high) {
  const factors = Math.log10(high / low) > 2.5 ? [1] : [1, 2, 5];
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    for (const factor of factors) {
      const value = factor * 10 ** power;
      if (value >= low * 0.999 && value <= high * 1.001) ticks.push(value);
    }
  }
  return ticks;
}

function number(value, places) {
  const size = Math.abs(value);
  if (value !== 0 && (size >= 1e9 || size < 1e-4)) return value.toPrecision(3).replace("-", "−");
  const most = places === undefined ? 6 : places;
  return value
    .toLocaleString("en", { minimumFractionDigits: places || 0, maximumFractionDigits: most })
    .replace("-", "−");
}

// Datapoints: expected amounts have fractions, of which one digit is enough.
const amount = (value) => number(Math.round(value * 10) / 10);
const percent = (value) => (value > 0 && value < 0.0005 ? "< 0.1\u00a0%" : `${number(value * 100, 1)}\u00a0%`);
const sum = (values) => values.reduce((total, value) => total + value, 0);

// A box beside a place on the stage, to its right where the window has room; one put below the stage stays there.
class Tip {
  constructor(stage) {
    this.stage = stage;
    this.box = html("div", { class: "tip", role: "status", hidden: true });
    stage.append(this.box);
  }

  show(x, y, ...content) {
    this.box.replaceChildren(...content);
    this.box.hidden = false;
    this.box.style.left = "0";
    const { offsetWidth: wide, offsetHeight: high } = this.box;
    const room = document.documentElement.clientWidth - this.stage.getBoundingClientRect().left - 8;
    const left = x + 16 + wide <= room ? x + 16 : x - 16 - wide;
    this.box.style.left = `${Math.max(0, Math.min(left, room - wide))}px`;
    const height = this.stage.clientHeight;
    this.box.style.top = `${y >= height ? y : Math.max(0, Math.min(y, height - high))}px`;
  }

  hide() {
    this.box.hidden = true;
  }
}

// Draw now, so that nothing below moves later, and whenever the width changes: text keeps its size on every screen.
function responsive(stage, draw) {
  let last = 0;
  const fit = () => {
    const width = Math.round(stage.clientWidth);
    if (width && width !== last) draw((last = width));
  };
  fit();
  new ResizeObserver(fit).observe(stage);
}

// Buttons that hide and show parts of a drawing, and raise the one pointed at; `mark` makes the sample beside a title.
function legend(entries, mark, changed, raised) {
  const hidden = new Set();
  const buttons = entries.map((title, index) => {
    const button = html("button", { type: "button", "aria-pressed": "true" }, mark(index), html("span", {}, title));
    button.addEventListener("pointerenter", () => raised(index));
    button.addEventListener("pointerleave", () => raised(null));
    button.addEventListener("click", () => {
      const hide = !hidden.delete(index);
      if (hide) hidden.add(index);
      button.setAttribute("aria-pressed", String(!hide));
      changed();
    });
    return button;
  });
  const hideAll = (indices) => {
    buttons.forEach((button, index) => {
      if (indices.includes(index)) hidden.add(index);
      else hidden.delete(index);
      button.setAttribute("aria-pressed", String(!hidden.has(index)));
    });
    changed();
  };
  const element = html("div", { class: "legend", role: "group", "aria-label": "Show or hide" }, buttons);
  return { hidden, hideAll, element };
}

// A row of buttons of which one is chosen.
function switcher(label, choices, chosen, changed) {
  const buttons = choices.map(([value, text]) => {
    const button = html("button", { type: "button", value, "aria-pressed": String(value === chosen) }, text);
    button.addEventListener("click", () => {
      mark(value);
      changed(value);
    });
    return button;
  });
  const mark = (value) => buttons.forEach((button) => button.setAttribute("aria-pressed", String(button.value === value)));
  const element = html("div", { class: "switch", role: "group", "aria-label": label }, buttons);
  return { element, mark };
}

// A list of which one is chosen.
function chooser(label, choices, chosen, changed) {
  const options = choices.map(([value, text]) => html("option", { value, selected: value === chosen }, text));
  const field = html("select", {}, options);
  field.addEventListener("change", () => changed(field.value));
  return html("label", { class: "choose" }, html("span", {}, label), field);
}

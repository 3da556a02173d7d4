// Stacked bars, one row each: names on the left, or above where the page is narrow.
class StackedBars {
  constructor(stage, data) {
    Object.assign(this, { stage, data });
    const mark = (index) => html("span", { class: `dot part${index % 6}`, "aria-hidden": "true" });
    this.legend = legend(
      data.parts,
      mark,
      () => this.draw(this.width),
      (index) => this.raise(index),
    );
    const figure = stage.closest("figure");
    stage.before(...this.choices(), this.legend.element);
    this.tip = new Tip(stage);
    responsive(stage, (width) => this.draw(width));
    offer(
      figure,
      ["SVG", () => saveSvg(figure.dataset.name, this.picture)],
      ["CSV", () => saveCsv(figure.dataset.name, this.rows())],
    );
  }

  // Models cost every method the same, and much: the exchange alone shows where they differ.
  choices() {
    const { exchange, parts } = this.data;
    if (!exchange.length || exchange.length === parts.length) return [];
    const others = parts.map((_, index) => index).filter((index) => !exchange.includes(index));
    const changed = (value) => this.legend.hideAll(value === "exchange" ? others : []);
    return [
      switcher(
        "What is counted",
        [
          ["all", "the whole run"],
          ["exchange", "the exchange alone"],
        ],
        "all",
        changed,
      ).element,
    ];
  }

  // The same bars with other values, as while a run goes on.
  renew(data) {
    this.data = data;
    this.draw(this.width);
  }

  rows() {
    const head = ["", ...this.parts.map((part) => `${this.data.parts[part]} (${this.data.unit})`)];
    return [head, ...this.data.bars.map((bar, index) => [bar.title, ...this.parts.map((part) => this.data.values[part][index])])];
  }

  raise(index) {
    for (const bar of this.picture.querySelectorAll(".bar"))
      bar.classList.toggle("faded", index !== null && Number(bar.dataset.part) !== index);
  }

  get parts() {
    return this.data.parts.map((_, index) => index).filter((index) => !this.legend.hidden.has(index));
  }

  total(bar) {
    return sum(this.parts.map((part) => this.data.values[part][bar]));
  }

  measure(width) {
    const longest = Math.max(0, ...this.data.bars.map((bar) => bar.title.length));
    this.width = width;
    this.above = width < 520;
    this.row = this.above ? 44 : 32;
    this.left = this.above ? 0 : Math.min(width * 0.36, 22 + 7.2 * longest);
    this.height = this.row * this.data.bars.length + 24;
    const most = Math.max(0, ...this.data.bars.map((_, bar) => this.total(bar)));
    this.axis = steps(0, most || 1, Math.max(2, Math.min(6, (width - this.left) / 80)));
    this.perUnit = (width - this.left - 72) / (most || 1);
  }

  draw(width) {
    this.measure(width);
    const old = this.picture;
    const label = `${this.data.title}, in ${this.data.unit}`;
    this.picture = svg("svg", { viewBox: `0 0 ${width} ${this.height}`, role: "group", "aria-label": label });
    this.picture.append(this.ruler(), ...this.data.bars.map((bar, index) => this.bar(bar, index)));
    this.picture.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "mouse") this.tip.hide();
    });
    if (old) old.replaceWith(this.picture);
    else this.stage.prepend(this.picture);
    this.tip.hide();
  }

  ruler() {
    const group = svg("g", { "aria-hidden": "true" });
    const bottom = this.height - 20;
    for (const tick of this.axis.ticks) {
      const x = short(this.left + tick * this.perUnit);
      group.append(svg("line", { class: "gridline", x1: x, x2: x, y1: 0, y2: bottom }));
      group.append(
        svg("text", { x, y: bottom + 15, "text-anchor": tick ? "middle" : "start" }, number(tick, this.axis.places)),
      );
    }
    group.append(svg("text", { x: this.width, y: bottom + 15, "text-anchor": "end" }, this.data.unit));
    return group;
  }

  bar(bar, index) {
    const top = index * this.row;
    const middle = this.above ? top + 30 : top + this.row / 2;
    const says = this.parts.map((part) => `${this.data.parts[part]} ${number(this.data.values[part][index])}`);
    const group = svg("g", {
      class: "row",
      tabindex: 0,
      role: "img",
      "aria-label": `${bar.title}: ${says.join(", ")}`,
    });
    group.append(svg("rect", { class: "row-hit", x: 0, y: top, width: this.width, height: this.row, rx: 4 }));
    group.append(this.name(bar, this.above ? top + 13 : middle + 4.5));
    let x = this.left;
    for (const part of this.parts) {
      const wide = this.data.values[part][index] * this.perUnit;
      group.append(
        svg("rect", {
          class: `bar part${part % 6}`,
          "data-part": part,
          x: short(x),
          y: middle - 8,
          width: short(wide),
          height: 16,
        }),
      );
      x += wide;
    }
    group.append(
      svg("text", { class: "total", x: x + 8, y: middle + 4.5 }, number(Number(this.total(index).toPrecision(3)))),
    );
    const show = () => this.show(index, x, middle + 14);
    group.addEventListener("pointerenter", show);
    group.addEventListener("focus", show);
    group.addEventListener("blur", () => this.tip.hide());
    return group;
  }

  name(bar, y) {
    const known = bar.colour !== -1;
    const room = Math.floor(((this.above ? this.width : this.left) - 22) / 7);
    const text = bar.title.length > room ? `${bar.title.slice(0, Math.max(1, room - 1))}…` : bar.title;
    const group = svg("g", {}, svg("title", {}, bar.title), svg("text", { class: "name", x: known ? 14 : 0, y }, text));
    if (known)
      group.append(svg("circle", { class: `name-dot ${colourClass(bar.colour)}`, cx: 4.5, cy: y - 4.5, r: 4.5 }));
    return group;
  }

  show(index, x, y) {
    const total = this.total(index);
    const rows = this.parts.map((part) => {
      const value = this.data.values[part][index];
      const name = html("td", {}, html("i", { class: `dot part${part % 6}` }), this.data.parts[part]);
      const share = total ? percent(value / total) : "";
      return html(
        "tr",
        {},
        name,
        html("td", {}, `${number(Number(value.toPrecision(4)))} ${this.data.unit}`),
        html("td", { class: "range" }, share),
      );
    });
    this.tip.show(x, y, html("strong", {}, this.data.bars[index].title), html("table", {}, rows));
  }
}

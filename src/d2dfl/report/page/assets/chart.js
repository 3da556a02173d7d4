// Lines with bands over a common axis.
class LineChart {
  static count = 0;

  constructor(stage, data) {
    Object.assign(this, { stage, data, shown: null });
    if (!data.lines.length) {
      stage.append(html("p", { class: "empty" }, "Nothing was measured."));
      return;
    }
    const mark = (index) => {
      const line = data.lines[index];
      return html("span", { class: `swatch ${line.dash} ${colourClass(line.colour)}`, "aria-hidden": "true" });
    };
    this.legend = legend(
      data.lines.map((line) => line.title),
      mark,
      () => this.draw(this.width),
      (index) => this.raise(index),
    );
    stage.before(this.legend.element);
    this.places = [...new Set(data.lines.flatMap((line) => line.x))].sort((a, b) => a - b);
    this.whole = this.places.every(Number.isInteger);
    this.clip = `clip${(LineChart.count += 1)}`;
    this.remark = html("p", { class: "note" }, "Bands wider than the chart are left out; point at a name to see one.");
    this.tip = new Tip(stage);
    stage.after(this.remark);
    responsive(stage, (width) => this.draw(width));
  }

  get visible() {
    return this.data.lines.filter((_, index) => !this.legend.hidden.has(index));
  }

  measure(width) {
    const lines = this.visible.length ? this.visible : this.data.lines;
    const means = lines.flatMap((line) => line.mean);
    const span = Math.max(...means) - Math.min(...means) || Math.abs(means[0]) || 1;
    // Bands over few seeds can be far wider than what they surround: they are cut before they flatten the lines.
    const low = Math.max(Math.min(...lines.flatMap((line) => line.low), ...means), Math.min(...means) - 0.6 * span);
    const high = Math.min(Math.max(...lines.flatMap((line) => line.high), ...means), Math.max(...means) + 0.6 * span);
    const pad = (high - low || Math.abs(high) || 1) * 0.05;
    this.width = width;
    this.height = Math.round(Math.min(340, Math.max(220, width * 0.62)));
    this.y = { low: low - pad, high: high + pad };
    this.y = { ...this.y, ...steps(this.y.low, this.y.high, 5) };
    const longest = Math.max(...this.y.ticks.map((tick) => number(tick, this.y.places).length));
    this.box = { left: 12 + 7 * longest, right: width - 12, top: 24, bottom: this.height - 40 };
    this.x = this.across(width);
  }

  // The x axis; a single place has room on both sides.
  across(width) {
    const [first, last] = [this.places[0], this.places[this.places.length - 1]];
    if (this.data.log)
      return { low: first, high: last, ticks: this.places.length <= 8 ? this.places : powers(first, last) };
    const spread = first === last ? Math.abs(first) / 2 || 1 : 0;
    const [low, high] = [first - spread, last + spread];
    return { low, high, ...steps(low, high, Math.max(2, Math.min(8, width / 70)), this.whole ? 1 : 0) };
  }

  atX(value) {
    const { low, high } = this.x;
    const share = this.data.log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
    return short(this.box.left + share * (this.box.right - this.box.left));
  }

  atY(value) {
    return short(
      this.box.bottom - ((value - this.y.low) / (this.y.high - this.y.low)) * (this.box.bottom - this.box.top),
    );
  }

  draw(width) {
    this.measure(width);
    const label = `${this.data.title}: ${this.data.y} against ${this.data.x}. Left and right keys read the values.`;
    const old = this.picture;
    const focused = old && document.activeElement === old;
    this.picture = svg("svg", {
      viewBox: `0 0 ${width} ${this.height}`,
      tabindex: 0,
      role: "img",
      "aria-label": label,
    });
    this.cursor = svg("g", { class: "cursor" });
    this.groups = this.data.lines.map((line, index) => (this.legend.hidden.has(index) ? null : this.line(line)));
    const { left, right, top, bottom } = this.box;
    const inside = svg("rect", { x: left, y: top, width: Math.max(0, right - left), height: bottom - top });
    const shown = svg("g", {}, this.groups);
    shown.style.setProperty("--band", Math.min(0.15, 0.7 / this.visible.length));
    this.picture.append(svg("clipPath", { id: this.clip }, inside), this.axes(), shown, this.cursor);
    this.listen();
    this.remark.hidden = !this.picture.querySelector(".wide");
    if (old) old.replaceWith(this.picture);
    else this.stage.prepend(this.picture);
    if (focused) this.picture.focus();
    this.tip.hide();
    this.shown = null;
  }

  raise(index) {
    this.groups.forEach((group, number) => {
      if (!group) return;
      group.classList.toggle("raised", number === index);
      group.classList.toggle("faded", index !== null && number !== index);
    });
  }

  axes() {
    const { left, right, top, bottom } = this.box;
    const group = svg("g", { "aria-hidden": "true" });
    for (const tick of this.y.ticks) {
      const y = this.atY(tick);
      group.append(svg("line", { class: "gridline", x1: left, x2: right, y1: y, y2: y }));
      group.append(svg("text", { x: left - 8, y: y + 4, "text-anchor": "end" }, number(tick, this.y.places)));
    }
    group.append(svg("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }));
    for (const tick of this.x.ticks) {
      const x = this.atX(tick);
      group.append(svg("line", { class: "axis", x1: x, x2: x, y1: bottom, y2: bottom + 4 }));
      group.append(svg("text", { x, y: bottom + 18, "text-anchor": "middle" }, number(tick, this.x.places)));
    }
    group.append(svg("text", { x: (left + right) / 2, y: this.height - 4, "text-anchor": "middle" }, this.data.x));
    group.append(svg("text", { x: 0, y: 12 }, this.data.y));
    return group;
  }

  line(line) {
    const at = (values) => values.map((value, index) => `${this.atX(line.x[index])},${this.atY(value)}`);
    const group = svg("g", { class: colourClass(line.colour) });
    const high = at(line.high);
    const wide =
      sum(line.high.map((value, index) => value - line.low[index])) / line.x.length > this.y.high - this.y.low;
    group.append(
      svg("path", {
        class: wide ? "band wide" : "band",
        "clip-path": `url(#${this.clip})`,
        d: `M${[...high, ...at(line.low).reverse()].join("L")}Z`,
      }),
    );
    group.append(svg("path", { class: `curve ${line.dash}`, d: `M${at(line.mean).join("L")}` }));
    const few = line.x.length <= 8 ? line.x : [];
    few.forEach((x, index) =>
      group.append(svg("circle", { class: "spot", r: 2.5, cx: this.atX(x), cy: this.atY(line.mean[index]) })),
    );
    return group;
  }

  listen() {
    const follow = (event) => {
      const corner = this.picture.getBoundingClientRect();
      const away = this.places.map((place) => Math.abs(this.atX(place) - event.clientX + corner.left));
      this.point(away.indexOf(Math.min(...away)), event.clientY - corner.top);
    };
    this.picture.addEventListener("pointermove", follow);
    this.picture.addEventListener("pointerdown", follow);
    this.picture.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "mouse") this.leave(); // a finger that is lifted leaves too, but wants to read
    });
    this.picture.addEventListener("blur", () => this.leave());
    this.picture.addEventListener("keydown", (event) => {
      const last = this.places.length - 1;
      const now = this.shown === null ? last + 1 : this.shown;
      const next = { ArrowLeft: now - 1, ArrowRight: this.shown === null ? 0 : now + 1, Home: 0, End: last }[event.key];
      if (event.key === "Escape") this.leave();
      if (next === undefined) return;
      event.preventDefault();
      this.point(Math.max(0, Math.min(last, next)), this.box.top);
    });
  }

  leave() {
    this.shown = null;
    this.cursor.replaceChildren();
    this.tip.hide();
  }

  nearest(line, place) {
    const away = line.x.map((x) => Math.abs(x - place));
    return away.indexOf(Math.min(...away));
  }

  // The values of all lines at one place, or where each was measured next to it; the highest first.
  point(index, y) {
    const place = this.places[index];
    const x = this.atX(place);
    const found = this.visible.map((line) => ({ line, index: this.nearest(line, place) }));
    found.sort((a, b) => b.line.mean[b.index] - a.line.mean[a.index]);
    const exact = found.every((item) => item.line.x[item.index] === place);
    this.shown = index;
    this.cursor.replaceChildren(
      svg("line", { class: "crosshair", x1: x, x2: x, y1: this.box.top, y2: this.box.bottom }),
    );
    for (const item of found) {
      const spot = {
        class: `spot ${colourClass(item.line.colour)}`,
        r: 4,
        cx: this.atX(item.line.x[item.index]),
        cy: this.atY(item.line.mean[item.index]),
      };
      this.cursor.append(svg("circle", spot));
    }
    const places = Math.min(12, this.y.places + 2);
    const rows = found.map(({ line, index: at }) => {
      const name = html("td", {}, html("i", { class: `dot ${colourClass(line.colour)}` }), line.title);
      const range =
        line.low[at] === line.high[at] ? "" : `${number(line.low[at], places)} to ${number(line.high[at], places)}`;
      return html("tr", {}, name, html("td", {}, number(line.mean[at], places)), html("td", { class: "range" }, range));
    });
    const narrow = document.documentElement.clientWidth < 600; // the box would cover the lines
    this.tip.show(
      x,
      narrow ? this.height : y + 12,
      html("strong", {}, `${this.data.x} ${exact ? "" : "≈ "}${number(Number(place.toPrecision(6)))}`),
      html("table", {}, rows),
    );
  }
}

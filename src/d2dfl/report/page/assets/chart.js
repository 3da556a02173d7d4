// Lines with bands over a common axis.
class LineChart extends ZoomedChart {
  static count = 0;

  constructor(stage, data) {
    super();
    Object.assign(this, { stage, data, shown: null, range: null, bands: true });
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
    this.place();
    this.clip = `clip${(LineChart.count += 1)}`;
    this.remark = html("p", { class: "note" }, "Bands as high as the chart are left out; point at a name to see one.");
    this.tip = new Tip(stage);
    stage.before(this.controls(), this.legend.element);
    stage.after(this.remark);
    responsive(stage, (width) => this.draw(width));
    const figure = stage.closest("figure");
    offer(
      figure,
      ["SVG", () => saveSvg(figure.dataset.name, this.picture)],
      ["CSV", () => saveCsv(figure.dataset.name, this.rows())],
    );
  }

  place() {
    this.places = [...new Set(this.data.lines.flatMap((line) => line.x))].sort((a, b) => a - b);
    this.whole = this.places.every(Number.isInteger);
  }

  // The same lines with more values, as while a run goes on; what is hidden stays so, and the last half stays the last half.
  renew(data) {
    this.data = data;
    this.place();
    this.offer();
    if (this.range) this.range = this.share ? [this.last(this.share), this.places.at(-1)] : this.range;
    this.draw(this.width);
  }

  measure(width) {
    const lines = this.visible.length ? this.visible : this.data.lines;
    const values = (name) => lines.flatMap((line) => this.seen(line).map((index) => line[name][index]));
    const means = values("mean").length ? values("mean") : [0];
    const span = Math.max(...means) - Math.min(...means) || Math.abs(means[0]) || 1;
    // Bands over few seeds can be far wider than what they surround: they are cut before they flatten the lines.
    const ends = this.bands ? [values("low"), values("high")] : [[], []];
    const low = Math.max(Math.min(...ends[0], ...means), Math.min(...means) - 0.3 * span);
    const high = Math.min(Math.max(...ends[1], ...means), Math.max(...means) + 0.3 * span);
    const pad = (high - low || Math.abs(high) || 1) * 0.05;
    this.width = width;
    this.height = Math.round(Math.min(340, Math.max(220, width * 0.62)));
    this.y = { low: low - pad, high: high + pad };
    this.y = { ...this.y, ...steps(this.y.low, this.y.high, 5) };
    const longest = Math.max(...this.y.ticks.map((tick) => number(tick, this.y.places).length));
    this.x = this.across(width);
    this.box = { left: 12 + 7 * longest, right: width - this.room(width), top: 24, bottom: this.height - 40 };
  }

  // For names at the ends of lines, where the chart is wide enough; the legend has them all the same. Else for half of the last tick.
  room(width) {
    const longest = Math.max(0, ...this.visible.map((line) => line.title.length));
    this.named = width >= 380 && this.visible.length > 1;
    const tick = number(this.x.ticks.at(-1) || 0, this.x.places).length;
    return this.named ? Math.min(width * 0.33, 20 + 6.2 * longest) : Math.max(12, 2 + 3.7 * tick);
  }

  // The x axis; a single place has room on both sides.
  across(width) {
    const places = this.shownPlaces;
    const [first, last] = [places[0], places[places.length - 1]];
    if (this.data.log) return { low: first, high: last, ticks: places.length <= 8 ? places : powers(first, last) };
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
    this.picture.append(svg("clipPath", { id: this.clip }, inside), this.axes(), shown, this.endNames(), this.cursor);
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

  // Every line by its name at its end, moved apart where they would cover each other.
  endNames() {
    const group = svg("g", { class: "end-names", "aria-hidden": "true" });
    if (!this.named) return group;
    const ends = this.visible
      .filter((line) => this.seen(line).length)
      .map((line) => ({ line, y: this.atY(line.mean[this.seen(line).at(-1)]) }))
      .sort((a, b) => a.y - b.y);
    const gap = 12;
    ends.forEach((end, index) => (end.at = index ? Math.max(end.y, ends[index - 1].at + gap) : end.y));
    const over = ends.length ? ends.at(-1).at - this.box.bottom : 0;
    for (let index = ends.length - 1, limit = this.box.bottom; over > 0 && index >= 0; index -= 1, limit -= gap)
      ends[index].at = Math.min(ends[index].at, limit);
    const room = Math.floor((this.width - this.box.right - 14) / 6.2);
    for (const { line, y, at } of ends) {
      const x = this.box.right;
      const text = line.title.length > room ? `${line.title.slice(0, Math.max(1, room - 1))}…` : line.title;
      group.append(
        svg("path", { class: `leader ${colourClass(line.colour)}`, d: `M${x + 1},${y}L${x + 8},${short(at)}` }),
        svg("text", { x: x + 11, y: short(at + 3.5) }, text),
      );
    }
    return group;
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
    const seen = this.seen(line);
    const at = (values) => seen.map((index) => `${this.atX(line.x[index])},${this.atY(values[index])}`);
    const group = svg("g", { class: colourClass(line.colour) });
    if (!seen.length) return group;
    const { low, high } = this.y;
    const covers = (index) => Math.min(high, line.high[index]) - Math.max(low, line.low[index]) > 0.8 * (high - low);
    const widths = seen.map((index) => line.high[index] - line.low[index]);
    const wide = seen.length > 1 && (sum(widths) / seen.length > high - low || seen.filter(covers).length > seen.length / 4);
    if (this.bands)
      group.append(
        svg("path", {
          class: wide ? "band wide" : "band",
          "clip-path": `url(#${this.clip})`,
          d: `M${[...at(line.high), ...at(line.low).reverse()].join("L")}Z`,
        }),
      );
    group.append(svg("path", { class: `curve ${line.dash}`, d: `M${at(line.mean).join("L")}` }));
    for (const index of seen.length <= 8 ? seen : [])
      group.append(svg("circle", { class: "spot", r: 2.5, cx: this.atX(line.x[index]), cy: this.atY(line.mean[index]) }));
    return group;
  }

  // The place nearest to a pointer, among those that are shown.
  under(event) {
    const corner = this.picture.getBoundingClientRect();
    const away = this.shownPlaces.map((place) => Math.abs(this.atX(place) - event.clientX + corner.left));
    return { index: away.indexOf(Math.min(...away)), y: event.clientY - corner.top };
  }

  listen() {
    let from = null;
    const follow = (event) => {
      const { index, y } = this.under(event);
      this.point(index, y);
      if (from !== null && from !== index) this.mark(from, index);
    };
    this.picture.addEventListener("pointermove", follow);
    this.picture.addEventListener("pointerdown", (event) => {
      follow(event);
      if (event.pointerType === "mouse") from = this.under(event).index; // a finger scrolls
    });
    this.picture.addEventListener("pointerup", (event) => {
      const to = this.under(event).index;
      const [first, last] = [Math.min(from ?? to, to), Math.max(from ?? to, to)];
      from = null;
      if (last > first) this.zoomTo(this.shownPlaces[first], this.shownPlaces[last]);
    });
    this.picture.addEventListener("dblclick", () => this.show(1));
    this.picture.addEventListener("pointerleave", (event) => {
      from = null;
      if (event.pointerType === "mouse") this.leave(); // a finger that is lifted leaves too, but wants to read
    });
    this.picture.addEventListener("blur", () => this.leave());
    this.picture.addEventListener("keydown", (event) => this.keys(event));
  }

  keys(event) {
    const last = this.shownPlaces.length - 1;
    const now = this.shown === null ? last + 1 : this.shown;
    const next = { ArrowLeft: now - 1, ArrowRight: this.shown === null ? 0 : now + 1, Home: 0, End: last }[event.key];
    if (event.key === "Escape") this.leave();
    if (next === undefined) return;
    event.preventDefault();
    this.point(Math.max(0, Math.min(last, next)), this.box.top);
  }

  // The part of the axis that a dragging pointer chooses.
  mark(from, to) {
    const [first, last] = [from, to].sort((a, b) => a - b).map((index) => this.atX(this.shownPlaces[index]));
    const { top, bottom } = this.box;
    this.cursor.prepend(svg("rect", { class: "stretch", x: first, y: top, width: last - first, height: bottom - top }));
  }

  leave() {
    this.shown = null;
    this.cursor.replaceChildren();
    this.tip.hide();
  }

  nearest(line, place) {
    const away = line.x.map((x) => (this.inside(x) ? Math.abs(x - place) : Infinity));
    return away.indexOf(Math.min(...away));
  }

  // The values of all lines at one place, or where each was measured next to it; the highest first.
  point(index, y) {
    const place = this.shownPlaces[index];
    const x = this.atX(place);
    const found = this.visible
      .filter((line) => this.seen(line).length)
      .map((line) => ({ line, index: this.nearest(line, place) }));
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

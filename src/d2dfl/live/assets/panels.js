// Records as figures of a live page: drawn by the scripts of the page of a run, and renewed when newer ones come.
// A figure that draws a record, and draws it again when a newer one comes.
class Panel {
  constructor(box, kind) {
    Object.assign(this, { box, kind, drawing: null, look: "" });
  }

  // What must not change for a drawing to be renewed; else it is made anew.
  static shape(kind, data) {
    if (kind === "chart") return JSON.stringify([data.title, data.lines.map((line) => line.title)]);
    if (kind === "bars") return JSON.stringify([data.title, data.bars, data.parts]);
    return JSON.stringify([data.title, data.devices, data.layers.map((layer) => layer.title)]);
  }

  show(data) {
    const look = Panel.shape(this.kind, data);
    if (this.drawing && look === this.look) {
      this.drawing.renew(this.kind === "map" ? data.layers : data);
      return;
    }
    this.look = look;
    const stage = html("div", { class: "stage" });
    const title = html("figcaption", {}, data.title);
    const name = data.title.toLowerCase().replace(/[^a-z0-9]+/g, "-");
    const figure = html("figure", { class: `widget ${this.kind}`, "data-name": name }, title, stage);
    if (this.kind === "map") figure.append(mapKeys(data.keys));
    this.box.replaceChildren(figure);
    const make = { chart: LineChart, bars: StackedBars, map: DeviceMap }[this.kind];
    const chosen = this.kind === "map" && this.drawing ? this.drawing.state.layer : 0;
    this.drawing = new make(stage, this.kind === "map" ? { title: data.title, maps: [data], moment: data.moment, most: data.most } : data);
    if (chosen && chosen < data.layers.length) this.drawing.select(chosen);
  }
}

// The legend of a map, as the page of a run has it.
function mapKeys({ levels, said }) {
  const key = (look, text) => html("li", {}, html("i", { class: look, "aria-hidden": "true" }), text);
  const strokes = levels.map((text, index) => key(`stroke level${index}`, text));
  const words = [key("outline", "reliable cluster"), key("widths", "width: datapoints sent"), ...said.map((text) => html("li", {}, text))];
  return html(
    "div",
    { class: "keys" },
    html("div", {}, html("h5", {}, "Partitions trusted on link"), html("ul", {}, strokes)),
    html("div", {}, html("h5", {}, "Map"), html("ul", {}, words)),
  );
}

// As many panels of a kind as there are records.
class Row {
  constructor(box, kind) {
    Object.assign(this, { box, kind, panels: [] });
  }

  show(records) {
    while (this.panels.length < records.length) {
      const place = html("div", {});
      this.box.append(place);
      this.panels.push(new Panel(place, this.kind));
    }
    records.forEach((data, index) => this.panels[index].show(data));
    this.panels.splice(records.length).forEach((panel) => panel.box.remove());
  }
}

// A table as the page of a run has it. One with the same columns gets other numbers and further rows: it stays sorted as
// it was, and where it was scrolled to.
class GrowingTable {
  constructor(box) {
    Object.assign(this, { box, columns: "", sorted: null });
  }

  show({ title, columns, rows, note, explained }) {
    const same = this.sorted && this.columns === JSON.stringify(columns) && this.sorted.rows().length <= rows.length;
    if (!same) this.make(title, columns, explained);
    this.columns = JSON.stringify(columns);
    const lines = this.sorted.rows();
    const line = (cells) => html("tr", {}, cells.map((_, place) => html(place ? "td" : "th", place ? {} : { scope: "row" })));
    const all = [...lines, ...rows.slice(lines.length).map(line)];
    rows.forEach((row, index) => row.forEach((text, place) => (all[index].cells[place].textContent = text)));
    this.sorted.renew(all);
    this.box.querySelector("figcaption").firstChild.textContent = title;
    this.box.querySelector(".note").textContent = note;
    this.box.querySelector(".scroll").setAttribute("aria-label", title);
  }

  make(title, columns, explained) {
    const head = html("thead", {}, html("tr", {}, columns.map((text) => html("th", { scope: "col" }, text))));
    const table = html("table", { class: "numbers", "data-name": "table" }, head, html("tbody", {}));
    const scroll = html("div", { class: "scroll", tabindex: 0, role: "region" }, table);
    const parts = [html("figcaption", {}, title), scroll];
    if (explained.length) {
      const said = explained.flatMap(([heads, meaning]) => [html("dt", {}, heads), html("dd", {}, meaning)]);
      parts.push(html("details", { class: "columns" }, html("summary", {}, "What the columns say"), html("dl", {}, said)));
    }
    this.box.replaceChildren(html("figure", { class: "table" }, parts, html("p", { class: "note" })));
    this.sorted = handy(table);
    hinted(scroll);
  }
}

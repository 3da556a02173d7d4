// Devices in the plane and the graph of each method: one of them, or all side by side; what is pointed at is explained.
// With more links than this a map opens with the strongest alone; where these are still more, with one arrow between two clusters.
const MANY_LINKS = 60;
const TOP = 50;

class DeviceMap {
  constructor(stage, data) {
    Object.assign(this, { stage, data, pinned: null, picked: false });
    this.figure = stage.closest("figure");
    this.state = { map: 0, layer: 0, moment: data.moment || "expected", colour: "distance", focus: "", least: 0, together: false, side: false };
    this.inspector = new Inspector();
    this.head = html("div", { class: "map-head" });
    this.controls = html("div", { class: "controls map-controls" });
    this.board = html("div", { class: "board" });
    this.key = html("div", { class: "shades" });
    stage.append(this.head, this.controls, this.board);
    this.keys = this.figure.querySelector(".keys");
    if (this.keys) this.keys.prepend(this.key);
    this.listen();
    this.load(0);
    offer(
      this.figure,
      ["SVG", () => this.views.forEach((view) => saveSvg(`${this.file}-${view.layer.title}`, view.picture))],
      ["CSV", () => saveCsv(this.file, this.rows())],
    );
  }

  // What is saved is of one network: of several, its name says of which.
  get file() {
    const name = this.figure.dataset.name;
    return this.data.maps.length > 1 ? `${name}-${this.map.title}` : name;
  }

  get map() {
    return this.data.maps[this.state.map];
  }

  get layer() {
    return this.map.layers[this.state.layer];
  }

  // One network of several.
  load(index) {
    this.state = { ...this.state, map: index, layer: Math.min(this.state.layer, Math.max(0, this.data.maps[index].layers.length - 1)) };
    this.state.focus = "";
    if (!this.map.distance.length && this.state.colour === "distance") this.state.colour = "share";
    this.pinned = null;
    this.gather(this.state.together && new Set(this.map.cluster).size > 1); // a network of one cluster offers no such choice
    this.untangle();
    this.head.replaceChildren(...this.heads());
    this.controls.replaceChildren(...(this.map.layers.length ? this.choices() : []));
    this.arrange();
  }

  // The same devices with other links, as while a run goes on. What is chosen stays so, the least amount once somebody has set it.
  renew(layers) {
    this.map.layers = layers;
    if (!this.set) this.state.least = this.enough();
    this.range();
    this.draw();
  }

  // One arrow for all links between two clusters, or one a link.
  gather(together) {
    this.state.together = together;
    this.state.least = this.enough();
    this.set = false;
  }

  // One arrow for all links between two clusters where what is seen is a hairball, until the reader has chosen.
  untangle() {
    if (this.picked || this.set) return;
    this.gather(false);
    const shown = (layer) => linksOf(this.map, layer, this.state.focus).filter((link) => expected(link) >= this.state.least).length;
    const seen = this.state.side ? this.map.layers : this.map.layers.slice(this.state.layer, this.state.layer + 1);
    if (new Set(this.map.cluster).size > 1 && seen.some((layer) => shown(layer) > (this.data.most || MANY_LINKS))) this.gather(true);
  }

  // What the arrows of each method carry, the strongest first; methods without any are left out.
  sizes() {
    const arrows = (layer) => (this.state.together ? bundled(this.map, layer.links) : layer.links);
    return this.map.layers.map((layer) => arrows(layer).map(expected).sort((a, b) => b - a)).filter((sizes) => sizes.length);
  }

  // Where a method has more links than can be told apart: the most datapoints with which every method still shows its strongest
  // TOP, or half of its links if it has fewer; one more where that leaves too many, and not too few. Where many carry the same, all
  // of them are shown.
  enough() {
    const methods = this.sizes();
    if (!methods.some((sizes) => sizes.length > MANY_LINKS)) return 0;
    const least = methods.map((sizes) => Math.floor(sizes[Math.min(TOP, Math.ceil(sizes.length / 2)) - 1]));
    const lowest = Math.min(...least);
    const left = (sizes, from) => sizes.filter((size) => size >= from).length;
    const crowded = methods.some((sizes) => left(sizes, lowest) > MANY_LINKS);
    const enough = methods.every((sizes) => left(sizes, lowest + 1) >= Math.min(TOP / 2, Math.ceil(sizes.length / 2)));
    return crowded && enough ? lowest + 1 : lowest;
  }

  heads() {
    const parts = [];
    if (this.data.maps.length > 1) {
      const names = this.data.maps.map((map, index) => [String(index), map.title]);
      parts.push(chooser("Network", names, String(this.state.map), (value) => this.load(Number(value))));
    }
    this.tabs = this.map.layers.map((layer, index) => this.tab(layer, index));
    const list = html("div", { class: "tabs", role: "tablist", "aria-label": `Methods of ${this.map.title}` }, this.tabs);
    list.addEventListener("keydown", (event) => this.tabKeys(event));
    if (this.map.layers.length > 1) {
      const side = html("button", { type: "button", class: "plain side", "aria-pressed": String(this.state.side) }, "side by side");
      side.addEventListener("click", () => {
        this.state.side = !this.state.side;
        side.setAttribute("aria-pressed", String(this.state.side));
        this.untangle();
        this.range();
        this.arrange();
      });
      parts.push(side, list);
    }
    return parts;
  }

  tab(layer, index) {
    const dot = html("i", { class: "dot", "aria-hidden": "true" });
    const button = html("button", { type: "button", role: "tab", class: colourClass(layer.colour) }, dot, layer.title);
    button.addEventListener("click", () => this.select(index));
    return button;
  }

  tabKeys(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    this.select((this.state.layer + step + this.tabs.length) % this.tabs.length);
    this.tabs[this.state.layer].focus();
  }

  select(index) {
    this.state.layer = index;
    if (this.pinned && this.pinned.kind === "link") this.pinned = null;
    this.untangle();
    this.range();
    this.draw();
  }

  choices() {
    const { map } = this;
    const measured = map.layers.some((layer) => layer.went.length);
    const moments = [["before", "before"], ["expected", "expected after"], ...(measured ? [["went", "as it went"]] : [])];
    const set = (name) => (value) => {
      this.state[name] = value;
      this.draw();
    };
    const colours = [
      ...(map.distance.length ? [["distance", "distance to i.i.d."]] : []),
      ["share", "share of partitions at threshold"],
      ...(map.layers.some((layer) => layer.scores.length) ? [["score", "score on own labels"]] : []),
    ];
    const clusters = [...new Set(map.cluster)].sort((a, b) => a - b).map((number) => [`c${number}`, `cluster C${number}`]);
    const devices = map.names.map((name, index) => [`d${index}`, `device ${name}`]);
    this.together = html("input", { type: "checkbox", checked: this.state.together });
    this.together.addEventListener("change", () => {
      this.picked = true;
      this.gather(this.together.checked);
      this.range();
      this.draw();
    });
    return [
      switcher("Moment", moments, this.state.moment, set("moment")).element,
      colours.length > 1 ? chooser("Colour by", colours, this.state.colour, set("colour")) : null,
      chooser("Links of", [["", "all devices"], ...clusters, ...devices], "", (value) => {
        this.state.focus = value;
        this.untangle();
        this.range();
        this.draw();
      }),
      this.slider(),
      clusters.length > 1 ? html("label", { class: "check" }, this.together, "one arrow between clusters") : null,
    ].filter(Boolean);
  }

  get most() {
    return Math.max(1, ...this.sizes().map((sizes) => Math.floor(sizes[0])));
  }

  range() {
    this.field.max = this.most;
    this.field.value = this.state.least;
    this.together.checked = this.state.together;
  }

  slider() {
    this.field = html("input", { type: "range", min: 0, max: this.most, step: 1, value: this.state.least });
    this.said = html("output", {});
    this.field.addEventListener("input", () => {
      this.set = true;
      this.state.least = Number(this.field.value);
      this.draw();
    });
    return html("label", { class: "least" }, html("span", {}, "At least"), this.field, this.said);
  }

  // One drawing with the words beside it, or a small one a method.
  arrange() {
    const many = this.state.side && this.map.layers.length > 1;
    const layers = many ? this.map.layers.map((_, index) => index) : [null];
    this.views = layers.map(() => new MapView(this.map));
    const panels = this.views.map((view, index) => {
      const name = many ? html("figcaption", {}, this.map.layers[index].title) : null;
      return html("div", { class: "panel", "data-layer": many ? index : null }, name, view.picture);
    });
    this.board.classList.toggle("many", many);
    this.board.replaceChildren(html("div", { class: "panels" }, panels), this.inspector.element);
    if (this.map.layers.length) this.draw();
    else this.inspector.nothing();
  }

  draw() {
    const { state } = this;
    this.tabs.forEach((tab, index) => {
      tab.setAttribute("aria-selected", String(index === state.layer));
      tab.tabIndex = index === state.layer ? 0 : -1;
    });
    this.views.forEach((view, index) => view.draw(this.views.length > 1 ? this.map.layers[index] : this.layer, state));
    this.board.querySelectorAll(".panel").forEach((panel, index) => panel.classList.toggle("on", index === state.layer));
    this.tell();
    this.legend();
    this.explain(this.pinned);
  }

  // How many links are shown, and why not all.
  tell() {
    const view = this.views[this.views.length > 1 ? this.state.layer : 0];
    const all = this.layer.links.length;
    const [shown, inner] = [view.drawn.length, this.layer.links.filter((link) => this.map.cluster[link.from] === this.map.cluster[link.to]).length];
    const least = `${this.state.least} datapoint${this.state.least === 1 ? "" : "s"}`;
    const words = this.state.together
      ? `${least}: ${shown} of ${bundled(this.map, this.layer.links).length} arrows; ${inner} of ${number(all, 0)} links stay inside a cluster`
      : `${least}: ${number(shown, 0)} of ${number(all, 0)} links`;
    this.said.textContent = this.state.moment === "before" ? "no links yet" : words;
  }

  legend() {
    const measure = measureOf(this.map, this.layer, this.state);
    const words = { distance: "Distance to i.i.d.", share: "Share of partitions at threshold", score: "Score on own labels" };
    const kind = this.state.colour === "score" && !this.layer.scores.length ? "share" : this.state.colour;
    const shown = (value) => (measure.percent ? percent(value).replace(".0", "") : number(value, measure.digits));
    const keys = Array.from({ length: SHADES }, (_, shade) => {
      const share = [shade / SHADES, (shade + 1) / SHADES].map((part) => (measure.best === "low" ? part : 1 - part));
      const ends = share.map((part) => measure.low + part * (measure.high - measure.low)).sort((a, b) => a - b);
      return html("li", {}, html("i", { class: `dot shade${shade}`, "aria-hidden": "true" }), `${shown(ends[0])} to ${shown(ends[1])}`);
    });
    this.key.replaceChildren(html("h5", {}, words[kind]), html("ul", {}, keys));
  }

  // All links of the methods that are shown.
  rows() {
    const head = ["method", "transmitter", "receiver", "loss probability", "trusted partitions", "expected", "sent", "arrived"];
    const names = this.map.names;
    return [
      head,
      ...this.views.flatMap(({ layer }) => layer.links.map((link) => [
        layer.title, names[link.from], names[link.to], link.loss, link.trusted, short(expected(link)), ...(link.went.length ? link.went : ["", ""]),
      ])),
    ];
  }

  listen() {
    const found = (event) => {
      const group = event.target.closest("[data-kind]");
      if (!group) return null;
      const panel = group.closest(".panel");
      const layer = panel.dataset.layer === undefined ? this.state.layer : Number(panel.dataset.layer);
      return { kind: group.dataset.kind, index: Number(group.dataset.index), layer };
    };
    const box = this.board;
    box.addEventListener("pointerover", (event) => {
      if (event.target.closest("svg")) this.explain(found(event) || this.pinned);
    });
    box.addEventListener("pointerleave", () => this.explain(this.pinned));
    box.addEventListener("click", (event) => {
      if (!event.target.closest("svg")) return;
      const thing = found(event);
      const same = thing && this.pinned && thing.kind === this.pinned.kind && thing.index === this.pinned.index;
      this.pinned = same ? null : thing;
      this.explain(this.pinned);
    });
    // Not on the drawing: one that listens for focus would be a stop of its own for the Tab key.
    this.stage.addEventListener("focusin", (event) => {
      const thing = found(event);
      if (thing && event.target.matches(":focus-visible")) this.explain(thing);
    });
    box.addEventListener("keydown", (event) => this.keyed(event, found(event)));
  }

  // Arrow keys walk to the nearest device in that direction; Enter keeps the explanation; Escape lets go.
  keyed(event, thing) {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (event.key === "Escape") this.explain((this.pinned = null));
    if (!thing || (!way && event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    if (!way) {
      this.explain((this.pinned = thing));
      return;
    }
    const view = this.views[this.views.length > 1 ? thing.layer : 0];
    const here = this.map.devices[thing.index];
    let best = null;
    this.map.devices.forEach(([x, y], device) => {
      const [along, away] = [[x - here[0], y - here[1]], Math.hypot(x - here[0], y - here[1])];
      const ahead = along[0] * way[0] + along[1] * way[1];
      const cost = away * (2 - ahead / away);
      if (ahead > 0.5 * away && (!best || cost < best.cost)) best = { device, cost };
    });
    if (!best) return;
    view.nodes[thing.index].tabIndex = -1;
    view.nodes[best.device].tabIndex = 0;
    view.nodes[best.device].focus();
  }

  explain(thing) {
    if (!this.layer) return;
    const layer = this.map.layers[thing ? thing.layer : this.state.layer];
    const chosen = this.views.length > 1 ? layer : this.layer;
    const mine = this.views.find((view) => view.layer === chosen);
    this.views.forEach((view) => view.emphasise(thing && (thing.kind === "device" || view === mine) ? thing : null));
    if (!thing) this.inspector.method(this.map, this.layer, this.data.maps.length);
    else if (thing.kind === "device") this.inspector.device(this.map, chosen, thing.index, this.state);
    else if (mine.drawn[thing.index]) this.inspector.link(this.map, mine.drawn[thing.index]);
  }
}

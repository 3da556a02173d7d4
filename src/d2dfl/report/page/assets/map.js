// Devices in the plane and the graph of each method; what is pointed at is explained beside it.
class DeviceMap {
  constructor(stage, data) {
    Object.assign(this, { stage, data, layer: 0, pinned: null });
    this.inspector = new Inspector(data);
    this.tabs = data.layers.map((layer, index) => this.tab(layer, index));
    const list = html("div", { class: "tabs", role: "tablist", "aria-label": `Methods of ${data.title}` }, this.tabs);
    list.addEventListener("keydown", (event) => this.tabKeys(event));
    this.picture = svg("svg", { viewBox: `0 0 ${data.size.join(" ")}`, role: "group", "aria-label": data.title });
    this.links = svg("g");
    this.nodes = data.devices.map((place, device) => this.node(place, device));
    this.picture.append(this.clusters(), this.links, ...this.nodes, this.scale());
    if (data.layers.length > 1) stage.append(list);
    stage.append(html("div", { class: "board" }, this.picture, this.inspector.element));
    this.listen();
    if (data.layers.length) this.select(0);
    else this.inspector.nothing();
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
    this.select((this.layer + step + this.tabs.length) % this.tabs.length);
    this.tabs[this.layer].focus();
  }

  select(index) {
    this.layer = index;
    this.tabs.forEach((tab, number) => {
      tab.setAttribute("aria-selected", String(number === index));
      tab.tabIndex = number === index ? 0 : -1;
    });
    const layer = this.data.layers[index];
    const order = layer.links.map((_, number) => number).sort((a, b) => layer.links[b].width - layer.links[a].width);
    this.lines = [];
    for (const number of order) this.lines[number] = this.line(layer.links[number], number);
    this.links.replaceChildren(...order.map((number) => this.lines[number]));
    this.nodes.forEach((node, device) => this.dress(node, device, layer));
    if (this.pinned && this.pinned.kind === "link") this.pinned = null;
    this.explain(this.pinned);
  }

  node([x, y], device) {
    const radius = this.data.radius;
    const face = svg("circle", { class: "face", cx: x, cy: y, r: radius });
    const hit = svg("circle", { class: "hit", cx: x, cy: y, r: Math.max(radius + 1.5, 5) });
    const { inside, labels, places, readable } = this.data;
    const text = readable ? svg("text", { x, y, "font-size": (inside ? 1 : 0.7) * radius }) : null;
    const [left, top] = places[device] || [];
    const beside = places.length ? svg("text", { class: inside ? "count" : "name", x: left, y: top }) : null;
    const name = inside ? text : beside;
    if (name) name.textContent = labels[device];
    return svg(
      "g",
      { "data-kind": "device", "data-index": device, tabindex: device ? -1 : 0, role: "button" },
      face,
      text,
      beside,
      hit,
    );
  }

  dress(node, device, layer) {
    const count = layer.satisfied[device];
    node.setAttribute("class", `node level${layer.level[device]}`);
    node.setAttribute(
      "aria-label",
      `Device ${this.data.names[device]}: ${count} of ${this.data.partitions.length} partitions at threshold`,
    );
    const text = node.querySelector(this.data.inside ? ".count" : "text");
    if (text) text.textContent = String(count);
  }

  // A curve from rim to rim with a head; a pale one under it keeps crossings readable, a broad one meets the pointer.
  line(link, index) {
    const [start, end, bend] = [this.data.devices[link.from], this.data.devices[link.to], link.bend];
    const speed = 2 * Math.max(Math.hypot(end[0] - bend[0], end[1] - bend[1]), 1e-6);
    const trim = Math.min((this.data.radius + 1) / speed, 0.35);
    const size = Math.min(2.4 + 2.2 * link.width, this.data.radius) / speed;
    const head = Math.min(size, 0.7 * (1 - 2 * trim));
    const at = (t) =>
      [0, 1].map((axis) => (1 - t) ** 2 * start[axis] + 2 * t * (1 - t) * bend[axis] + t * t * end[axis]);
    const [base, tip] = [at(1 - trim - head), at(1 - trim)];
    const side = [0.42 * (tip[1] - base[1]), -0.42 * (tip[0] - base[0])];
    const places = Array.from({ length: 13 }, (_, step) => at(trim + ((1 - 2 * trim - 0.9 * head) * step) / 12));
    const path = `M${places.map((place) => place.map(short).join(",")).join("L")}`;
    const corners = [tip, [base[0] + side[0], base[1] + side[1]], [base[0] - side[0], base[1] - side[1]]];
    const { faint } = this.data.layers[this.layer];
    const group = svg("g", { class: `link level${link.level}`, opacity: faint, "data-kind": "link", "data-index": index });
    group.append(svg("path", { class: "halo", d: path, "stroke-width": short(1.5 * link.width + 0.6) }));
    group.append(svg("path", { class: "body", d: path, "stroke-width": link.width }));
    group.append(
      svg("polygon", { class: "head", points: corners.map((corner) => corner.map(short).join(",")).join(" ") }),
    );
    group.append(svg("path", { class: "hit", d: path }));
    return group;
  }

  clusters() {
    const group = svg("g", { "aria-hidden": "true" });
    this.data.hulls.forEach((hull, index) => {
      group.append(
        svg("polygon", { class: `hull tint${index % 6}`, points: hull.map((corner) => corner.join(",")).join(" ") }),
      );
      const [x, y] = this.data.hullNames[index];
      group.append(svg("text", { class: "cluster", x, y }, `C${index}`));
    });
    return group;
  }

  scale() {
    const [x, y] = [8, this.data.size[1] - 7];
    if (!this.data.scale) return svg("text", { class: "scale", x, y }, "not to scale");
    const rule = svg("path", { class: "rule", d: `M${x},${y - 3}v3h${this.data.scale.length}v-3` });
    return svg(
      "g",
      { "aria-hidden": "true" },
      rule,
      svg("text", { class: "scale", x: x + this.data.scale.length + 4, y }, this.data.scale.text),
    );
  }

  listen() {
    const found = (event) => {
      const group = event.target.closest("[data-kind]");
      return group ? { kind: group.dataset.kind, index: Number(group.dataset.index) } : null;
    };
    this.picture.addEventListener("pointerover", (event) => this.explain(found(event) || this.pinned));
    this.picture.addEventListener("pointerleave", () => this.explain(this.pinned));
    this.picture.addEventListener("click", (event) => {
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
    this.picture.addEventListener("keydown", (event) => this.keys(event, found(event)));
  }

  // Arrow keys walk to the nearest device in that direction; Enter keeps the explanation; Escape lets go.
  keys(event, thing) {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (event.key === "Escape") this.explain((this.pinned = null));
    if (!thing || (!way && event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    if (!way) {
      this.explain((this.pinned = thing));
      return;
    }
    const here = this.data.devices[thing.index];
    let best = null;
    this.data.devices.forEach(([x, y], device) => {
      const [along, away] = [[x - here[0], y - here[1]], Math.hypot(x - here[0], y - here[1])];
      const ahead = along[0] * way[0] + along[1] * way[1];
      const cost = away * (2 - ahead / away);
      if (ahead > 0.5 * away && (!best || cost < best.cost)) best = { device, cost };
    });
    if (!best) return;
    this.nodes[thing.index].tabIndex = -1;
    this.nodes[best.device].tabIndex = 0;
    this.nodes[best.device].focus();
  }

  explain(thing) {
    const layer = this.data.layers[this.layer];
    if (!layer) return;
    this.picture.classList.toggle("picking", Boolean(thing));
    const touches = (link, index) =>
      thing.kind === "link" ? index === thing.index : link.from === thing.index || link.to === thing.index;
    const near = new Set(thing && thing.kind === "device" ? [thing.index] : []);
    layer.links.forEach((link, index) => {
      const mine = Boolean(thing) && touches(link, index);
      this.lines[index].classList.toggle("near", mine);
      this.lines[index].classList.toggle("chosen", mine && thing.kind === "link");
      if (mine) near.add(link.from).add(link.to);
    });
    this.nodes.forEach((node, device) => {
      node.classList.toggle("near", near.has(device));
      node.classList.toggle("chosen", Boolean(thing) && thing.kind === "device" && thing.index === device);
    });
    if (!thing) this.inspector.method(layer);
    else if (thing.kind === "device") this.inspector.device(layer, thing.index);
    else this.inspector.link(layer.links[thing.index]);
  }
}

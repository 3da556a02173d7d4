// One drawing of devices and of one method's links. What is chosen beside it comes as `state`.
const SHADES = 5;

// Datapoints that a link carries: as expected, or as the exchange went.
const expected = (link) => sum(link.amounts.map(([, value]) => value));
const listed = (link) => link.amounts.filter(([, value]) => value >= 0.05); // less is written as 0
const carried = (link, moment) => (moment === "went" && link.went.length ? link.went[0] : expected(link));

// What devices may be coloured by: a value a device, which end is good, and from where to where the colours go.
function measureOf(map, layer, state) {
  const before = state.moment === "before";
  if (state.colour === "distance" && map.distance.length) {
    const now = before ? map.distance : state.moment === "went" ? layer.wentDistance : layer.distance;
    const most = Math.max(0.1, ...map.distance, ...map.layers.flatMap((one) => [...one.distance, ...one.wentDistance]));
    return { values: now.length ? now : map.distance, low: 0, high: Math.ceil(most * 10) / 10, best: "low", digits: 2 };
  }
  if (state.colour === "score" && layer.scores.length) {
    const all = map.layers.flatMap((one) => one.scores);
    const [low, high] = [Math.floor(Math.min(...all) * 20) / 20, Math.ceil(Math.max(...all) * 20) / 20];
    return { values: layer.scores, low, high: Math.max(high, low + 0.05), best: "high", digits: 2 };
  }
  const count = Math.max(1, map.partitions.length);
  const values = atThreshold(map, layer, state).map((number) => number / count);
  const all = [...map.layers.flatMap((one) => one.satisfied.map((number) => number / count)), ...values];
  return { values, low: 0, high: Math.max(...all) || 1, best: "high", digits: 0, percent: true };
}

// Partitions of each device that meet their threshold.
function atThreshold(map, layer, state) {
  if (state.moment === "expected" || (state.moment === "went" && !layer.went.length)) return layer.satisfied;
  const rows = state.moment === "before" ? map.before : layer.went;
  return rows.map((row, device) => row.filter((value, index) => value >= map.threshold[device][index] - 1e-9).length);
}

// Links of a device, of a cluster, or all.
function linksOf(map, layer, focus) {
  const [kind, number] = [focus[0], Number(focus.slice(1))];
  if (kind === "d") return layer.links.filter((link) => link.from === number || link.to === number);
  if (kind === "c") return layer.links.filter((link) => map.cluster[link.from] === number || map.cluster[link.to] === number);
  return layer.links;
}

// 0 is the best of the shades.
function shadeOf(measure, value) {
  const share = (value - measure.low) / (measure.high - measure.low);
  const good = measure.best === "low" ? share : 1 - share;
  return Math.max(0, Math.min(SHADES - 1, Math.floor(good * SHADES - 1e-9)));
}

class MapView {
  constructor(map, pointed) {
    this.map = map;
    this.pointed = pointed;
    this.picture = svg("svg", { viewBox: `0 0 ${map.size.join(" ")}`, role: "group", "aria-label": map.title });
    this.links = svg("g");
    this.nodes = map.devices.map((place, device) => this.node(place, device));
    this.picture.append(this.clusters(), this.links, this.clusterNames(), ...this.nodes, this.scale());
  }

  // Links that are shown: those of the chosen device or cluster that carry enough, or one arrow between two clusters.
  shown(layer, state) {
    if (state.moment === "before") return [];
    const kept = linksOf(this.map, layer, state.focus);
    const found = state.together ? bundled(this.map, kept) : kept;
    return found.filter((link) => carried(link, state.moment) >= state.least);
  }

  draw(layer, state) {
    this.layer = layer;
    this.state = state;
    this.drawn = this.shown(layer, state);
    const most = Math.max(1e-9, ...this.drawn.map((link) => carried(link, state.moment)));
    const order = this.drawn.map((_, index) => index);
    order.sort((a, b) => carried(this.drawn[b], state.moment) - carried(this.drawn[a], state.moment));
    this.lines = [];
    const faint = Math.max(0.35, Math.min(1, Math.sqrt(60 / Math.max(this.drawn.length, 1))));
    for (const index of order) {
      const wide = this.map.wide * (0.3 + (0.7 * carried(this.drawn[index], state.moment)) / most);
      this.lines[index] = this.line(this.drawn[index], index, wide * (state.together ? 1.6 : 1), faint);
    }
    this.links.replaceChildren(...order.map((index) => this.lines[index]));
    const measure = measureOf(this.map, layer, state);
    const counts = atThreshold(this.map, layer, state);
    this.nodes.forEach((node, device) => this.dress(node, device, shadeOf(measure, measure.values[device]), counts[device]));
    this.picture.classList.toggle("bundles", state.together);
  }

  node([x, y], device) {
    const { radius, inside, labels, places, readable } = this.map;
    const rim = Math.min(1.2, 0.2 * radius); // of a small device a broad one would leave no colour
    const face = svg("circle", { class: "face", cx: x, cy: y, r: radius });
    face.style.setProperty("--rim", short(rim)); // not as an attribute, which a live page's policy forbids
    const hit = svg("circle", { class: "hit", cx: x, cy: y, r: Math.max(radius + 1.5, 5) });
    const text = readable ? svg("text", { x, y, "font-size": (inside ? 1 : 0.7) * radius }) : null;
    const [left, top] = places[device] || [];
    const beside = places.length ? svg("text", { class: inside ? "count" : "name", x: left, y: top }) : null;
    const name = inside ? text : beside;
    if (name) name.textContent = labels[device];
    const attributes = { "data-kind": "device", "data-index": device, tabindex: device ? -1 : 0, role: "button" };
    return svg("g", attributes, face, text, beside, hit);
  }

  dress(node, device, shade, count) {
    node.setAttribute("class", `node shade${shade}`);
    const words = `${count} of ${this.map.partitions.length} partitions at threshold`;
    node.setAttribute("aria-label", `Device ${this.map.names[device]}: ${words}`);
    const text = node.querySelector(this.map.inside ? ".count" : "text");
    if (text) text.textContent = String(count);
  }

  // A curve from rim to rim with a head; a pale one under it keeps crossings readable, a broad one meets the pointer.
  line(link, index, wide, faint) {
    const [start, end] = [link.start || this.map.devices[link.from], link.end || this.map.devices[link.to]];
    const bend = link.bend;
    const speed = 2 * Math.max(Math.hypot(end[0] - bend[0], end[1] - bend[1]), 1e-6);
    const trim = Math.min((link.parts ? 0.5 * this.map.radius : this.map.radius + 1) / speed, 0.35);
    const size = Math.min(2.4 + 2.2 * wide, this.map.radius) / speed;
    const head = Math.min(size, 0.7 * (1 - 2 * trim));
    const at = (t) =>
      [0, 1].map((axis) => (1 - t) ** 2 * start[axis] + 2 * t * (1 - t) * bend[axis] + t * t * end[axis]);
    const [base, tip] = [at(1 - trim - head), at(1 - trim)];
    const side = [0.42 * (tip[1] - base[1]), -0.42 * (tip[0] - base[0])];
    const places = Array.from({ length: 13 }, (_, step) => at(trim + ((1 - 2 * trim - 0.9 * head) * step) / 12));
    const path = `M${places.map((place) => place.map(short).join(",")).join("L")}`;
    const corners = [tip, [base[0] + side[0], base[1] + side[1]], [base[0] - side[0], base[1] - side[1]]];
    const look = link.parts ? "link bundle" : `link level${link.level}`;
    const group = svg("g", { class: look, opacity: faint, "data-kind": "link", "data-index": index });
    group.append(svg("path", { class: "halo", d: path, "stroke-width": short(1.5 * wide + 0.6) }));
    group.append(svg("path", { class: "body", d: path, "stroke-width": short(wide) }));
    const points = corners.map((corner) => corner.map(short).join(",")).join(" ");
    group.append(svg("polygon", { class: "head", points }), svg("path", { class: "hit", d: path }));
    return group;
  }

  clusters() {
    const group = svg("g", { "aria-hidden": "true" });
    this.map.hulls.forEach((hull, index) => {
      const points = hull.map((corner) => corner.join(",")).join(" ");
      group.append(svg("polygon", { class: `hull tint${index % 6}`, points }));
    });
    return group;
  }

  // Above the links, which come and go.
  clusterNames() {
    const names = this.map.hullNames.map(([x, y], index) => svg("text", { class: "cluster", x, y }, `C${index}`));
    return svg("g", { "aria-hidden": "true" }, ...names);
  }

  // At the left below, or at the right where a device stands in the way.
  scale() {
    const { length, text } = this.map.scale || { length: 0, text: "not to scale" };
    const [wide, y, room] = [this.map.size[0], this.map.size[1] - 7, length + 4 + 5.5 * text.length];
    const free = (left) =>
      !this.map.devices.some(([across, down]) => {
        const reach = this.map.radius + 4;
        return down + reach > y - 8 && across + reach > left && across - reach < left + room;
      });
    const x = free(8) || !free(wide - 8 - room) ? 8 : wide - 8 - room;
    if (!this.map.scale) return svg("text", { class: "scale", x, y }, text);
    const rule = svg("path", { class: "rule", d: `M${x},${y - 3}v3h${length}v-3` });
    return svg("g", { "aria-hidden": "true" }, rule, svg("text", { class: "scale", x: x + length + 4, y }, text));
  }

  // Bring out what is pointed at, and fade the rest.
  emphasise(thing) {
    const there = Boolean(thing) && (thing.kind === "device" || Boolean(this.drawn[thing.index]));
    this.picture.classList.toggle("picking", there);
    const touches = (link, index) =>
      thing.kind === "link" ? index === thing.index : !link.parts && (link.from === thing.index || link.to === thing.index);
    const near = new Set(there && thing.kind === "device" ? [thing.index] : []);
    this.drawn.forEach((link, index) => {
      const mine = there && touches(link, index);
      this.lines[index].classList.toggle("near", mine);
      this.lines[index].classList.toggle("chosen", mine && thing.kind === "link");
      for (const one of mine ? link.parts || [link] : []) near.add(one.from).add(one.to);
    });
    this.nodes.forEach((node, device) => {
      node.classList.toggle("near", near.has(device));
      node.classList.toggle("chosen", there && thing.kind === "device" && thing.index === device);
    });
  }
}

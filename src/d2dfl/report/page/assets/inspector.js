// A long name by its beginning and its end: names of many classes often differ there alone.
function brief(name) {
  return name.length > 15 ? `${name.slice(0, 7)}…${name.slice(-7)}` : name;
}

// The words beside a map: about a method, a device or a link. Every amount says whether it was expected or measured.
class Inspector {
  constructor() {
    this.element = html("div", { class: "inspector", role: "status" });
  }

  nothing() {
    this.element.replaceChildren(html("p", {}, "No graph was recorded."));
  }

  // `networks`: how many the figure has; tables take the mean over seeds.
  method(map, layer, networks) {
    const sent = sum(layer.links.map(expected));
    const arrives = sum(layer.links.map((link) => expected(link) * (1 - link.loss)));
    const went = layer.links.filter((link) => link.went.length);
    const [moved, arrived] = [0, 1].map((place) => sum(went.map((link) => link.went[place])));
    const satisfied = sum(layer.satisfied) / layer.satisfied.length;
    const mean = (values) => number(sum(values) / values.length, 3);
    const measured = layer.went.length > 0;
    const facts = [
      ["Links", number(layer.links.length)],
      ["Datapoints sent, expected", amount(sent)],
      measured ? ["as it went", amount(moved)] : null,
      ["Expected to arrive", sent ? `${amount(arrives)} (${percent(arrives / sent)})` : "0"],
      measured ? ["arrived", moved ? `${amount(arrived)} (${percent(arrived / moved)})` : "0"] : null,
      ["Partitions at threshold, expected", `${number(satisfied, 1)} of ${map.partitions.length} a device`],
      map.distance.length ? ["Distance to i.i.d., before", mean(map.distance)] : null,
      layer.distance.length ? ["expected after", mean(layer.distance)] : null,
      layer.wentDistance.length ? ["as it went", mean(layer.wentDistance)] : null,
      layer.scores.length ? ["Score on own labels, mean", mean(layer.scores)] : null,
    ];
    const hint = html("p", {}, "Point at a device or a link to see what it does; click to keep it.");
    const table = measured
      ? html("p", {}, "The tables count the exchange as it went: whole datapoints, budgets held, losses drawn.")
      : html("p", {}, "All amounts are as discovery expects them; none is measured here.");
    const one = networks > 1 ? html("p", {}, `All this is of one network, ${map.title}; a mean of the tables is over all seeds.`) : "";
    this.element.replaceChildren(html("h4", {}, layer.title), this.facts(facts), table, one, hint);
  }

  device(map, layer, device, state) {
    const head = html(
      "h4",
      {},
      `Device ${map.names[device]} `,
      html("span", {}, `cluster C${map.cluster[device]}, ${layer.title}`),
    );
    const count = atThreshold(map, layer, state)[device];
    const when = { before: "before the exchange", expected: "expected", went: "as it went" }[state.moment];
    const facts = [html("p", {}, `${count} of ${map.partitions.length} partitions at threshold, ${when}`)];
    if (map.distance.length && layer.distance.length) {
      const after = state.moment === "went" ? layer.wentDistance : layer.distance;
      const words = `${number(map.distance[device], 2)} → ${number((after.length ? after : layer.distance)[device], 2)}`;
      facts.push(html("p", {}, `distance to i.i.d. ${words}`));
    }
    if (layer.scores.length) facts.push(html("p", {}, `score on its own labels ${number(layer.scores[device], 3)}`));
    const rows = this.counts(map, layer, device, state);
    this.element.replaceChildren(head, ...facts, rows, this.explain(), ...this.peers(map, layer, device));
  }

  link(map, link) {
    const name = (end) => (link.parts ? `cluster C${end}` : `device ${map.names[end]}`);
    const words = `${name(link.from)} → ${name(link.to)}`;
    const head = html("h4", {}, words[0].toUpperCase() + words.slice(1));
    const facts = [
      link.parts ? ["Links", number(link.parts.length)] : null,
      [link.parts ? "Share expected to be lost" : "Loss probability", percent(link.loss)],
      link.parts ? null : ["Trusted", `${link.trusted} of ${map.partitions.length} partitions`],
      ["Datapoints sent, expected", amount(expected(link))],
      link.went.length ? ["as it went", amount(link.went[0])] : null,
      ["Expected to arrive", amount(expected(link) * (1 - link.loss))],
      link.went.length ? ["arrived", amount(link.went[1])] : null,
    ];
    const most = Math.max(1e-9, ...link.amounts.map(([, value]) => value));
    const rows = listed(link).map(([partition, value]) => {
      const track = html("div", { class: "track" }, this.piece("gained", 0, value / most));
      return html(
        "tr",
        {},
        html("th", { scope: "row", title: map.partitions[partition] }, brief(map.partitions[partition])),
        html("td", { class: "wide" }, track),
        html("td", {}, amount(value)),
      );
    });
    this.element.replaceChildren(
      head,
      this.facts(facts),
      html("h5", {}, "Sent by partition, expected"),
      html("table", { class: "counts" }, html("tbody", {}, rows)),
    );
  }

  facts(pairs) {
    const items = pairs.filter(Boolean).map(([name, text]) => [html("dt", {}, name), html("dd", {}, text)]);
    return html("dl", { class: "facts-list" }, items);
  }

  // Before and after per partition, with a mark at the threshold; partitions that nobody has or wants are left out.
  counts(map, layer, device, state) {
    const rows = state.moment === "went" && layer.went.length ? layer.went : layer.after;
    const [before, after, wanted] = [map.before[device], rows[device], map.threshold[device]];
    const most = Math.max(1e-9, ...before, ...after, ...wanted);
    const lines = map.partitions.map((name, index) => {
      const [had, has, wants] = [before[index], after[index], wanted[index]];
      if (!had && !has && !wants) return null;
      const kept = Math.min(had, has) / most;
      const change = this.piece(has >= had ? "gained" : "lost", kept, Math.abs(has - had) / most);
      const mark = html("i", { class: "wanted" });
      mark.style.left = `calc(${short((100 * wants) / most)}% - 1px)`;
      const track = html("div", { class: "track" }, this.piece("kept", 0, kept), change, wants ? mark : null);
      const words = has === had ? amount(had) : `${amount(had)} → ${amount(has)}`;
      return html(
        "tr",
        { title: `${name}: wants ${amount(wants)}` },
        html("th", { scope: "row" }, brief(name)),
        html("td", { class: "wide" }, track),
        html("td", {}, words),
      );
    });
    return html("table", { class: "counts" }, html("tbody", {}, lines));
  }

  piece(kind, start, share) {
    const piece = html("i", { class: kind });
    piece.style.left = `${short(100 * start)}%`;
    piece.style.width = `${short(100 * share)}%`;
    return piece;
  }

  explain() {
    const keys = [
      ["kept", "before"],
      ["gained", "received"],
      ["lost", "given away"],
      ["wanted", "threshold"],
    ];
    const items = keys.map(([kind, text]) => html("span", {}, html("i", { class: kind }), text));
    return html("div", { class: "explain" }, items);
  }

  peers(map, layer, device) {
    const lists = [
      ["Receives", "to", "from", "from device"],
      ["Sends", "from", "to", "to device"],
    ];
    return lists.flatMap(([heading, mine, theirs, words]) => {
      const links = layer.links.filter((link) => link[mine] === device);
      const items = links.map((link) => {
        const arrives = `${amount(expected(link) * (1 - link.loss))} expected to arrive`;
        const went = link.went.length ? `; as it went ${amount(link.went[0])}, arrived ${amount(link.went[1])}` : "";
        const text = `${amount(expected(link))} ${words} ${map.names[link[theirs]]}`;
        const head = html("div", {}, html("b", {}, text), html("span", {}, arrives));
        const more = `loss ${percent(link.loss)}, ${link.trusted} trusted; ${this.what(map, link)}${went}`;
        return html("li", {}, head, html("span", {}, more));
      });
      return [html("h5", {}, heading), links.length ? html("ul", {}, items) : html("p", {}, "nothing")];
    });
  }

  what(map, link) {
    return listed(link).map(([partition, value]) => `${map.partitions[partition]}: ${amount(value)}`).join(", ") || "nothing";
  }
}

// The words beside a map: about a method, a device or a link.
class Inspector {
  constructor(data) {
    this.data = data;
    this.element = html("div", { class: "inspector", role: "status" });
  }

  nothing() {
    this.element.replaceChildren(html("p", {}, "No graph was recorded."));
  }

  method(layer) {
    const sent = sum(layer.links.map((link) => this.sent(link)));
    const arrives = sum(layer.links.map((link) => this.sent(link) * (1 - link.loss)));
    const satisfied = sum(layer.satisfied) / layer.satisfied.length;
    const facts = [
      ["Links", number(layer.links.length)],
      ["Datapoints sent", amount(sent)],
      ["Expected to arrive", sent ? `${amount(arrives)} (${percent(arrives / sent)})` : "0"],
      ["Partitions at threshold", `${number(satisfied, 1)} of ${this.data.partitions.length} a device`],
    ];
    const list = this.facts(facts);
    const hint = html("p", {}, "Point at a device or a link to see what it does; click to keep it.");
    this.element.replaceChildren(html("h4", {}, layer.title), list, hint);
  }

  device(layer, device) {
    const { data } = this;
    const head = html(
      "h4",
      {},
      `Device ${data.names[device]} `,
      html("span", {}, `cluster C${data.cluster[device]}, ${layer.title}`),
    );
    const count = html("p", {}, `${layer.satisfied[device]} of ${data.partitions.length} partitions at threshold`);
    this.element.replaceChildren(head, count, this.counts(layer, device), this.explain(), ...this.peers(layer, device));
  }

  link(link) {
    const head = html("h4", {}, `Device ${this.data.names[link.from]} → device ${this.data.names[link.to]}`);
    const facts = [
      ["Loss probability", percent(link.loss)],
      ["Trusted", `${link.trusted} of ${this.data.partitions.length} partitions`],
      ["Datapoints sent", amount(this.sent(link))],
      ["Expected to arrive", amount(this.sent(link) * (1 - link.loss))],
    ];
    const list = this.facts(facts);
    const most = Math.max(1e-9, ...link.amounts.map(([, value]) => value));
    const rows = link.amounts.map(([partition, value]) => {
      const track = html("div", { class: "track" }, this.piece("gained", 0, value / most));
      return html(
        "tr",
        {},
        html("th", { scope: "row" }, this.data.partitions[partition]),
        html("td", { class: "wide" }, track),
        html("td", {}, amount(value)),
      );
    });
    this.element.replaceChildren(
      head,
      list,
      html("h5", {}, "Sent by partition"),
      html("table", { class: "counts" }, html("tbody", {}, rows)),
    );
  }

  facts(pairs) {
    const items = pairs.map(([name, text]) => [html("dt", {}, name), html("dd", {}, text)]);
    return html("dl", { class: "facts-list" }, items);
  }

  sent(link) {
    return sum(link.amounts.map(([, value]) => value));
  }

  // Before and after per partition, with a mark at the threshold; partitions that nobody has or wants are left out.
  counts(layer, device) {
    const [before, after, wanted] = [this.data.before[device], layer.after[device], this.data.threshold[device]];
    const most = Math.max(1e-9, ...before, ...after, ...wanted);
    const rows = this.data.partitions.map((name, index) => {
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
        html("th", { scope: "row" }, name),
        html("td", { class: "wide" }, track),
        html("td", {}, words),
      );
    });
    return html("table", { class: "counts" }, html("tbody", {}, rows));
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
    return html(
      "div",
      { class: "explain" },
      keys.map(([kind, text]) => html("span", {}, html("i", { class: kind }), text)),
    );
  }

  peers(layer, device) {
    const lists = [
      ["Receives", "to", "from", "from device"],
      ["Sends", "from", "to", "to device"],
    ];
    return lists.flatMap(([heading, mine, theirs, words]) => {
      const links = layer.links.filter((link) => link[mine] === device);
      const items = links.map((link) => {
        const arrives = `${amount(this.sent(link) * (1 - link.loss))} expected to arrive`;
        const head = html(
          "div",
          {},
          html("b", {}, `${amount(this.sent(link))} ${words} ${this.data.names[link[theirs]]}`),
          html("span", {}, arrives),
        );
        return html(
          "li",
          {},
          head,
          html("span", {}, `loss ${percent(link.loss)}, ${link.trusted} trusted; ${this.what(link)}`),
        );
      });
      return [html("h5", {}, heading), links.length ? html("ul", {}, items) : html("p", {}, "nothing")];
    });
  }

  what(link) {
    return (
      link.amounts.map(([partition, value]) => `${this.data.partitions[partition]}: ${amount(value)}`).join(", ") ||
      "nothing"
    );
  }
}

// A page that listens: every record that comes is drawn by the scripts of the page of a run.
const FRAME_MS = 300; // between two moments of a discovery that is played
const SINGLE = 250; // links of a discovery up to which each is an arrow of its own, to be seen as it forms
const PATIENCE = 3; // failed attempts after which a run is given up
const AFTER = /^(train|measure|hand over)/; // what is done when no links are looked for any more
const at = (name) => document.getElementById(name);

// Links on one map: of the newest discovery as it goes, of one that has ended moment by moment, and in the end of all methods.
class Negotiation {
  constructor() {
    this.map = new Panel(at("negotiation-map"), "map");
    this.charts = new Row(at("negotiation-charts"), "chart");
    this.newest = null;
    this.all = null; // the graphs of all methods
    this.found = [];
    this.looking = true; // devices still look for links
    this.trace = null;
    this.kept = {}; // discoveries that came whole, at the end of the run
    this.timer = null;
    this.chooser = at("which");
    this.slider = at("moment");
    this.chooser.addEventListener("change", () => this.choose(this.chooser.value));
    this.slider.addEventListener("input", () => {
      this.stop();
      this.go(Number(this.slider.value));
    });
    at("back").addEventListener("click", () => this.by(-1));
    at("next").addEventListener("click", () => this.by(1));
    at("play").addEventListener("click", () => (this.timer ? this.stop() : this.play()));
    this.stepping(false);
  }

  // The newest moment of what is being looked for.
  now(data) {
    this.newest = data;
    this.redraw();
  }

  // The graphs that were found, with what moved over them.
  graphs(data) {
    this.all = data;
    this.list(this.found);
    this.redraw();
  }

  // Whether there are still links to be looked for; `over`: nothing will come any more.
  look(looking, over = false) {
    if (looking === this.looking && !over) return;
    Object.assign(this, { looking, over });
    this.list(this.found);
    this.redraw();
  }

  // What is shown while nobody steps through a discovery.
  redraw() {
    const all = this.all && (!this.looking || !this.newest);
    if (this.trace || !(all || this.newest)) return;
    at("negotiation").hidden = false;
    if (all) {
      this.charts.show([]);
      this.map.show({ ...this.all, title: "Graphs that were found" });
    } else {
      this.map.show({ ...this.newest.map, title: this.newest.title, layers: [this.newest.layer], most: SINGLE });
      this.charts.show(this.newest.charts);
    }
  }

  // What one can choose: discoveries that have ended, and what is shown otherwise.
  list(found) {
    this.found = found;
    const chosen = this.chooser.value;
    const first = this.all && !this.looking ? "all graphs that were found" : this.over ? "the newest" : "as it goes";
    const alone = this.over && !this.all && document.body.dataset.replay; // then there is nothing else
    const shown = [...(alone && found.length ? [] : [["", first]]), ...found];
    if (chosen && !shown.some(([value]) => value === chosen)) shown.push([chosen, this.chooser.selectedOptions[0].textContent]); // let go since
    const options = shown.map(([value, text]) => html("option", { value, selected: value === chosen }, text));
    this.chooser.replaceChildren(...options);
    this.chooser.parentElement.hidden = options.length < 2;
    if (found.length) at("negotiation").hidden = false;
  }

  // Played from its beginning, unless the reader wants nothing to move.
  async open(name) {
    await this.choose(name);
    if (this.trace && !matchMedia("(prefers-reduced-motion: reduce)").matches) this.play();
  }

  async choose(name) {
    this.stop();
    this.trace = null;
    this.chooser.value = name;
    if (!name) {
      this.stepping(false);
      this.redraw();
      return;
    }
    if (this.kept[name]) {
      this.load(this.kept[name]);
      return;
    }
    let answer = null;
    try {
      answer = await fetch(`asked/${encodeURIComponent(name)}`);
    } catch {
      answer = null; // the run has ended, and its server with it
    }
    if (answer && answer.status === 404) {
      this.stepping(false);
      this.say("This discovery is no longer kept; choose a newer one.");
      return;
    }
    if (!answer || !answer.ok) {
      this.stepping(false);
      this.say("The run has ended: `d2dfl replay` and its folder show every discovery.");
      return;
    }
    this.load((await answer.json()).data);
  }

  load(trace) {
    this.trace = trace;
    this.stepping(true);
    this.slider.max = trace.frames.length - 1;
    const last = this.layer(trace.frames.length - 1);
    this.map.drawing = null; // another network, or another choice of what is too little to be shown
    this.map.show({ ...trace.map, title: trace.title, layers: [last], most: SINGLE });
    this.map.drawing.set = true;
    this.charts.show(trace.charts);
    this.go(trace.frames.length - 1);
  }

  stepping(can) {
    at("steps").hidden = !can;
    this.slider.hidden = !can;
    if (!can) this.say("");
  }

  layer(index) {
    const { rows, facts, ...rest } = this.trace.frames[index];
    return { ...rest, links: rows.map(([link, amounts]) => ({ ...this.trace.links[link], amounts })) };
  }

  go(index) {
    const last = this.trace.frames.length - 1;
    this.index = Math.max(0, Math.min(last, index));
    this.slider.value = this.index;
    this.map.drawing.renew([this.layer(this.index)]);
    const [share, messages, objective, heat] = this.trace.frames[this.index].facts;
    const devices = this.trace.map.devices.length;
    const words = [
      `moment ${this.index + 1} of ${last + 1}`,
      `${percent(share)} of the work`,
      `${number(messages / devices, 0)} messages a device`,
      `objective ${number(objective, 4)}`,
      heat === null ? "" : `temperature ${number(heat, 4)}`,
    ];
    this.say(words.filter(Boolean).join(", "));
    for (const panel of this.charts.panels) this.mark(panel.drawing, this.trace.places[this.index]);
    at("back").disabled = this.index === 0;
    at("next").disabled = this.index === last;
  }

  // Where on a chart this moment stands.
  mark(chart, place) {
    if (!chart.box || !chart.inside(place)) return;
    const { left: first, top, bottom } = chart.box;
    const left = Math.max(first, chart.atX(place));
    chart.cursor.replaceChildren(svg("line", { class: "crosshair", x1: left, x2: left, y1: top, y2: bottom }));
  }

  by(step) {
    this.stop();
    this.go(this.index + step);
  }

  play() {
    if (this.index === this.trace.frames.length - 1) this.go(0);
    at("play").textContent = "Pause";
    this.timer = setInterval(() => {
      this.go(this.index + 1);
      if (this.index === this.trace.frames.length - 1) this.stop();
    }, FRAME_MS);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    at("play").textContent = "Play";
  }

  say(words) {
    at("words").textContent = words;
    at("words").hidden = !words;
  }
}

class LivePage {
  constructor() {
    this.negotiation = new Negotiation();
    this.rows = { curves: new Row(at("curves"), "chart"), energy: new Row(at("energy"), "bars") };
    this.table = new GrowingTable(at("table"));
    this.held = null; // newest records by name, while the reader has paused
    this.failures = 0;
    at("hold").addEventListener("click", () => this.hold());
    this.source = new EventSource("events");
    this.source.addEventListener("part", (event) => this.hear(JSON.parse(event.data)));
    this.source.addEventListener("end", (event) => this.end(JSON.parse(event.data).words));
    this.source.addEventListener("open", () => this.say("", ""));
    this.source.addEventListener("error", () => this.miss());
  }

  hear({ name, data }) {
    this.failures = 0;
    if (this.held) this.held.set(name, data);
    else this.show(name, data);
  }

  show(name, data) {
    if (name === "head") this.head(data);
    else if (name === "negotiation") this.negotiation.now(data);
    else if (name === "discoveries") this.negotiation.list(data);
    else if (name === "traces") Object.assign(this.negotiation.kept, data);
    else if (name === "graphs") this.negotiation.graphs(data);
    else if (name === "table") this.reveal("numbers", () => this.table.show(data));
    else if (name === "sums") Object.entries(data).forEach(([part, one]) => this.show(part, one));
    else if (this.rows[name] && (data.length || this.rows[name].panels.length)) this.reveal("training", () => this.rows[name].show(data));
    if (this.trains) this.lift();
  }

  // A section is seen before it is drawn: what is hidden has no width.
  reveal(section, draw) {
    at(section).hidden = false;
    draw();
  }

  // Training is what one looks at from then on, so it comes before the discoveries; not while one of them is stepped through.
  lift() {
    if (document.body.dataset.replay || this.lifted || this.negotiation.trace || at("training").hidden) return;
    this.lifted = true;
    at("negotiation").before(at("training"), at("numbers"));
  }

  head({ what, share, left }) {
    this.trains = what.startsWith("train");
    if (this.trains) this.lift();
    this.negotiation.look(!AFTER.test(what));
    at("what").textContent = what;
    at("share").value = share;
    at("left").textContent = [`${number(share * 100, 0)}\u00a0%`, left].filter(Boolean).join(", ");
  }

  // While paused nothing on the page moves; what comes is kept, and shown at once afterwards.
  hold() {
    const held = this.held;
    this.held = held ? null : new Map();
    at("hold").textContent = held ? "Pause" : "Go on";
    at("hold").setAttribute("aria-pressed", String(!held));
    if (held) held.forEach((data, name) => this.show(name, data));
  }

  end(words) {
    this.source.close();
    if (this.held) this.hold();
    at("hold").hidden = true;
    at("share").hidden = true;
    at("what").textContent = words;
    this.say("", "over");
    this.lift(); // also for who comes after training
    this.negotiation.look(false, true);
    const { found } = this.negotiation;
    if (document.body.dataset.replay && found.length) this.negotiation.open(found[0][0]);
  }

  miss() {
    this.failures += 1;
    if (this.failures < PATIENCE && this.source.readyState !== EventSource.CLOSED) {
      this.say("No answer; trying again.", "lost");
      return;
    }
    this.source.close();
    at("hold").hidden = true;
    this.say("The run does not answer any more: it was stopped or killed. What was shown until then stays here.", "lost");
  }

  say(words, look) {
    at("left").textContent = words;
    at("status").className = `status ${look}`;
  }
}

theme();
new LivePage();

// The part of a chart's axis that is shown, and the buttons that choose it. Whoever extends this draws.
class ZoomedChart {
  // Which part of the axis is shown: early rounds flatten the end, where methods differ. Dragging chooses any part.
  controls() {
    const parts = [
      ["1", "all"],
      ["0.5", "last half"],
      ["0.2", "last fifth"],
    ];
    this.zoom = switcher(`Part of the axis: ${this.data.x}`, parts, "1", (value) => this.show(Number(value)));
    this.reset = html("button", { type: "button", class: "plain", hidden: true }, "show all");
    this.reset.addEventListener("click", () => this.show(1));
    const bands = html("input", { type: "checkbox", checked: true });
    bands.addEventListener("change", () => {
      this.bands = bands.checked;
      this.draw(this.width);
    });
    this.banded = html("label", { class: "check" }, bands, "bands");
    this.offer();
    return html("div", { class: "controls" }, this.zoom.element, this.reset, this.banded);
  }

  // Parts in which two places stand at least, and bands where there are any: while a run goes on there come to be more.
  offer() {
    const wide = (line) => line.low.some((value, index) => value !== line.high[index]);
    this.banded.hidden = !this.data.lines.some(wide);
    const buttons = [...this.zoom.element.children];
    for (const button of buttons) button.hidden = this.places.length * Number(button.value) < 2;
    this.zoom.element.hidden = buttons[1].hidden; // nothing to choose from
  }

  // The last share of the places.
  show(share) {
    this.share = share;
    this.range = share === 1 ? null : [this.last(share), this.places[this.places.length - 1]];
    this.zoom.mark(String(share));
    this.reset.hidden = true;
    this.draw(this.width);
  }

  // Where the last share of the places begins.
  last(share) {
    return this.places[Math.floor((1 - share) * this.places.length)];
  }

  // Any part of the axis, from one place to another.
  zoomTo(from, to) {
    if (this.places.filter((place) => place >= from && place <= to).length < 2) return;
    this.range = [from, to];
    this.share = 0;
    this.zoom.mark("");
    this.reset.hidden = false;
    this.draw(this.width);
  }

  inside(place) {
    return !this.range || (place >= this.range[0] && place <= this.range[1]);
  }

  // The places of a line that are shown.
  seen(line) {
    return line.x.map((_, index) => index).filter((index) => this.inside(line.x[index]));
  }

  get shownPlaces() {
    return this.places.filter((place) => this.inside(place));
  }

  rows() {
    const lines = this.visible;
    const head = [this.data.x, ...lines.flatMap((line) => [line.title, `${line.title} low`, `${line.title} high`])];
    const at = (line, place) => {
      const index = line.x.indexOf(place);
      return index < 0 ? ["", "", ""] : [line.mean[index], line.low[index], line.high[index]];
    };
    return [head, ...this.places.map((place) => [place, ...lines.flatMap((line) => at(line, place))])];
  }

  get visible() {
    return this.data.lines.filter((_, index) => !this.legend.hidden.has(index));
  }
}

// Widgets, the switch between learners, the table of verdicts, and the contents.
const WIDGETS = { chart: LineChart, bars: StackedBars, map: DeviceMap };
const SECTIONS = { narrow: 3, wide: 8 }; // of more, a page shows the heads and opens what one asks for

function drawAll() {
  for (const figure of document.querySelectorAll("[data-widget]")) {
    const data = JSON.parse(figure.querySelector("script").textContent);
    new WIDGETS[figure.dataset.widget](figure.querySelector(".stage"), data);
  }
}

// Whose verdicts the whole page shows; the style sheet hides the others.
function learners() {
  const box = document.querySelector(".learner");
  document.documentElement.dataset.learner = "all";
  if (!box) return;
  const buttons = [...box.querySelectorAll("button")];
  for (const button of buttons) {
    button.addEventListener("click", () => {
      document.documentElement.dataset.learner = button.value;
      buttons.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
    });
  }
}

function filters() {
  const box = document.querySelector(".filters");
  if (!box) return;
  const rows = [...document.querySelectorAll(".overview tbody tr")];
  const buttons = [...box.querySelectorAll("button")];
  const field = box.querySelector("input");
  const wanted = { kind: "", system: "" };
  const apply = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      let found = false;
      for (const result of row.querySelectorAll(".result")) {
        const fits = Object.entries(wanted).every(([what, value]) => !value || result.dataset[what] === value);
        result.classList.toggle("faded", !fits);
        found = found || fits;
      }
      row.hidden = !found || !words.every((word) => row.dataset.words.includes(word));
      if (!row.hidden) shown += 1;
    }
    buttons.forEach((button) =>
      button.setAttribute("aria-pressed", String(wanted[button.dataset.what] === button.value)),
    );
    box.querySelector(".said").textContent = shown === rows.length ? "" : `${shown} of ${rows.length} shown`;
  };
  for (const button of buttons) {
    button.addEventListener("click", () => {
      wanted[button.dataset.what] = wanted[button.dataset.what] === button.value ? "" : button.value;
      apply();
    });
  }
  field.addEventListener("input", apply);
}

// On a page with many sections each shows its head; a button, or a link to it, opens the rest.
class Folding {
  constructor() {
    this.sections = [...document.querySelectorAll("section.record")];
    this.narrow = matchMedia("(max-width: 700px)");
    this.buttons = new Map();
    for (const section of this.sections) {
      const body = section.querySelector(".content");
      const button = html("button", { type: "button", class: "unfold", "aria-controls": body.id });
      button.addEventListener("click", () => this.set(section, body.hidden));
      section.querySelector("header").append(button);
      this.buttons.set(section, button);
    }
    this.narrow.addEventListener("change", () => this.fit());
    this.fit();
  }

  get folds() {
    return this.sections.length > (this.narrow.matches ? SECTIONS.narrow : SECTIONS.wide);
  }

  fit() {
    for (const section of this.sections) {
      this.set(section, !this.folds);
      this.buttons.get(section).hidden = !this.folds;
    }
  }

  set(section, open) {
    const button = this.buttons.get(section);
    section.querySelector(".content").hidden = !open;
    button.setAttribute("aria-expanded", String(open));
    button.textContent = open ? "Show less" : "Show charts and tables";
  }

  // Where an address leads, opened and in view: all is drawn by now, so nothing moves it away again.
  follow() {
    const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!place) return;
    const section = place.closest("section.record");
    if (section) this.set(section, true);
    place.scrollIntoView({ behavior: "instant" });
  }
}

// Open beside the text where there is room, closed above it elsewhere; the section that one reads is marked.
function contents(folding) {
  const box = document.querySelector(".contents details");
  const wide = matchMedia("(min-width: 1120px)");
  const fit = () => (box.open = wide.matches);
  wide.addEventListener("change", fit);
  fit();
  const links = [...box.querySelectorAll("a")];
  box.addEventListener("click", (event) => {
    if (event.target.closest("a") && !wide.matches) box.open = false;
  });
  const follow = () => requestAnimationFrame(() => folding.follow()); // the contents above have closed by then
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (link && link.hash === location.hash) follow();
  });
  addEventListener("hashchange", follow);
  const mark = (place) =>
    links.forEach((link) =>
      link.hash === `#${place}` ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current"),
    );
  const watcher = new IntersectionObserver(
    (seen) => seen.filter((item) => item.isIntersecting).forEach((item) => mark(item.target.id)),
    { rootMargin: "-20% 0px -75% 0px" },
  );
  document.querySelectorAll("section").forEach((section) => watcher.observe(section));
}

theme();
learners();
filters();
tables();
drawAll();
const folding = new Folding();
contents(folding);
folding.follow();

// What can be taken along: rows as CSV, drawings as SVG with the look that they have now.
const LOOKS = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-opacity",
  "stroke-dasharray",
  "stroke-linecap",
  "stroke-linejoin",
  "opacity",
  "font-size",
  "font-weight",
  "font-family",
  "text-anchor",
  "dominant-baseline",
  "paint-order",
];

function save(name, kind, text) {
  const address = URL.createObjectURL(new Blob([text], { type: kind }));
  const link = html("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000); // not at once: the browser still reads it
}

// A text that a spreadsheet would take for a formula gets an apostrophe; numbers stay numbers.
function csvCell(value) {
  const text = String(value ?? "");
  const safe = /^[-=+@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
  return /[",\n\r;]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

const csvText = (rows) => `${rows.map((row) => row.map(csvCell).join(",")).join("\r\n")}\r\n`;
const saveCsv = (name, rows) => save(`${name}.csv`, "text/csv", csvText(rows));

// A copy that needs no style sheet: every look is written to its element.
function svgText(picture) {
  const copy = picture.cloneNode(true);
  const [olds, news] = [picture, copy].map((root) => [root, ...root.querySelectorAll("*")]);
  olds.forEach((old, index) => {
    const look = getComputedStyle(old);
    const target = news[index];
    for (const name of LOOKS) if (look.getPropertyValue(name)) target.setAttribute(name, look.getPropertyValue(name));
    for (const name of ["class", "tabindex", "role", "aria-label", "aria-hidden"]) target.removeAttribute(name);
  });
  copy.querySelectorAll(".hit").forEach((hit) => hit.remove());
  const [, , width, height] = picture.getAttribute("viewBox").split(" ");
  const size = { xmlns: SPACE, width, height };
  for (const [name, value] of Object.entries(size)) copy.setAttribute(name, value);
  const paper = getComputedStyle(document.body).backgroundColor;
  copy.prepend(svg("rect", { width, height, fill: paper }));
  return new XMLSerializer().serializeToString(copy);
}

const saveSvg = (name, picture) => save(`${name}.svg`, "image/svg+xml", svgText(picture));

// Small buttons behind the title of a figure: [text, what it does when pressed].
function offer(figure, ...things) {
  const name = figure.querySelector("figcaption").textContent;
  const buttons = things.map(([text, act]) => {
    const button = html("button", { type: "button", "aria-label": `Download ${name} as ${text}` }, text);
    button.addEventListener("click", act);
    return button;
  });
  figure.querySelector("figcaption").after(html("div", { class: "offers" }, buttons));
}

// Tables: sorted by a click on a head, taken along as CSV, and a word where more of them is to the side.
const UNKNOWN_VALUE = "–";

// What a cell is sorted by: the number that it begins with, else its text; what is unknown comes last.
function sortKey(cell) {
  const text = cell.textContent.trim();
  const found = text.replaceAll(",", "").replace("−", "-").match(/^[+-]?\d*\.?\d+(e[+-]?\d+)?/i);
  return { unknown: text === UNKNOWN_VALUE || text === "", value: found ? Number(found[0]) : null, text };
}

function compared(one, other) {
  if (one.value !== null && other.value !== null) return one.value - other.value;
  return one.text.localeCompare(other.text, "en", { numeric: true });
}

// Sorted by whoever clicks a head. `renew` takes the rows of a table that grows, in the order in which they come.
function sortable(table) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  let first = [...body.rows];
  let now = { column: -1, way: 0 };
  const order = () => {
    const keyed = first.map((row) => ({ row, key: now.way ? sortKey(row.cells[now.column]) : null }));
    if (now.way)
      keyed.sort((a, b) =>
        a.key.unknown || b.key.unknown ? Number(a.key.unknown) - Number(b.key.unknown) : now.way * compared(a.key, b.key),
      );
    if (keyed.some((item, index) => item.row !== body.rows[index])) body.append(...keyed.map((item) => item.row));
  };
  const sort = (column) => {
    const next = now.column === column ? (now.way === -1 ? 1 : now.way === 1 ? 0 : -1) : -1; // the largest first
    now = { column, way: next };
    heads.forEach((head, index) => {
      const way = index === column && next ? (next > 0 ? "ascending" : "descending") : "none";
      head.setAttribute("aria-sort", way);
    });
    order();
  };
  heads.forEach((head, column) => {
    const button = html("button", { type: "button", class: "sort" }, ...head.childNodes);
    head.replaceChildren(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => sort(column));
  });
  const renew = (rows) => {
    first = rows;
    order();
  };
  return { rows: () => first, renew };
}

const tableRows = (table) =>
  [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent.trim().replace(/\s+/g, " ")));

// Say that a table goes on to the side, as long as it does.
function hinted(box) {
  const hint = html("p", { class: "hint", "aria-hidden": "true" }, "more columns to the side →");
  box.before(hint);
  const look = () => {
    const rest = box.scrollWidth - box.clientWidth - box.scrollLeft;
    hint.hidden = box.scrollWidth <= box.clientWidth + 1;
    hint.classList.toggle("done", rest <= 1);
    box.classList.toggle("more", rest > 1);
  };
  box.addEventListener("scroll", look, { passive: true });
  new ResizeObserver(look).observe(box);
  look();
}

// A table that can be sorted and taken along.
function handy(table) {
  const figure = table.closest("figure");
  if (figure) offer(figure, ["CSV", () => saveCsv(table.dataset.name, tableRows(table))]);
  return sortable(table);
}

function tables() {
  document.querySelectorAll("table.numbers").forEach(handy);
  document.querySelectorAll(".scroll").forEach(hinted);
}

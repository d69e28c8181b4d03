// The table of trials: filters without reloading, live rows, keyboard and selection. The server
// renders every row; what changed is replaced in place, so that scroll, focus and selection stay.
import { listen } from "./live.js";
import { onKey, showTimes } from "./page.js";

const TYPING_MS = 80;
const GATHER_MS = 300; // events before a look at the service
const SPARE = 5; // a look may take a sixth of the time
const MAX_SELECTED = 8;
const WORDS = {
  NoIssuesFound: "No issues found",
  NotEvaluated: "Not evaluated",
  InProgress: "In progress",
  Stopping: "Stopping",
};
const parser = new DOMParser();
const form = document.getElementById("filters");
const search = document.getElementById("search");
const problem = document.getElementById("problem");
const picked = document.getElementById("picked");
const selected = new Map(); // id -> name
let request = null;
let timer = 0;
let earliest = 0;

const results = () => document.getElementById("results");
const rows = () => [...document.querySelectorAll("#rows > tr")];
const idOf = (row) => row.id.slice("trial-".length);

// -- loading --------------------------------------------------------------------------------

// Fetch the table at an address and show it. `fresh`: mark rows that changed meanwhile.
async function load(address, { fresh = false } = {}) {
  request?.abort();
  const mine = (request = new AbortController());
  form.classList.add("busy");
  const began = performance.now();
  try {
    const response = await fetch(address, { signal: mine.signal, headers: { Accept: "text/html" } });
    const text = await response.text();
    if (mine.signal.aborted) return;
    if (response.redirected && new URL(response.url).pathname === "/login") {
      location.reload();
      return;
    }
    const page = parser.parseFromString(text, "text/html");
    if (!response.ok || !page.getElementById("results")) {
      complain(page.querySelector("[data-sentence]")?.textContent ?? text.slice(0, 300));
      return;
    }
    complain("");
    apply(page, fresh);
  } catch (error) {
    if (error.name === "AbortError") return;
    complain("The service cannot be reached. The table shows what it knew last; it is updated when the service answers.");
  } finally {
    if (request === mine) {
      request = null;
      form.classList.remove("busy");
      earliest = performance.now() + SPARE * (performance.now() - began);
    }
  }
}

function complain(sentence) {
  problem.replaceChildren();
  if (!sentence) return;
  const notice = document.createElement("p");
  notice.className = "notice Error";
  notice.textContent = sentence;
  problem.append(notice);
}

function apply(page, fresh) {
  replace("top", page);
  replace("count", page);
  const clear = page.getElementById("clear");
  document.getElementById("clear")?.remove();
  if (clear) document.getElementById("apply").after(clear);
  const next = page.getElementById("results");
  const body = next.querySelector("#rows");
  const current = document.getElementById("rows");
  if (body && current && next.dataset.columns === results().dataset.columns) {
    results().querySelector("thead").replaceWith(next.querySelector("thead"));
    merge(current, body, fresh);
    results().querySelector("nav.more")?.remove();
    const more = next.querySelector("nav.more");
    if (more) results().append(more);
  } else {
    replaceAll(next);
  }
  showTimes(results());
  showSelection();
  keepTabStop();
  measureHead();
}

function replace(id, page) {
  const next = page.getElementById(id);
  const current = document.getElementById(id);
  if (next && !current.isEqualNode(next)) {
    const focused = current.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    current.replaceChildren(...next.childNodes);
    if (focused) current.querySelector("a")?.focus();
  }
}

function replaceAll(next) {
  const focused = document.activeElement?.closest?.("tr")?.id;
  results().dataset.columns = next.dataset.columns;
  results().replaceChildren(...next.childNodes);
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

// Turn the present rows into the next ones, moving and changing as few as possible.
function merge(current, next, fresh) {
  const focused = document.activeElement;
  const known = new Map([...current.rows].map((row) => [row.id, row]));
  let place = current.firstElementChild;
  for (const row of [...next.rows]) {
    const own = known.get(row.id);
    known.delete(row.id);
    if (!own) {
      if (fresh) row.classList.add("fresh");
      row.tabIndex = -1;
      current.insertBefore(row, place);
      continue;
    }
    if (own.dataset.version !== row.dataset.version) change(own, row, fresh);
    if (own === place) place = place.nextElementSibling;
    else current.insertBefore(own, place);
  }
  for (const gone of known.values()) gone.remove();
  if (focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
}

function change(own, row, fresh) {
  own.dataset.version = row.dataset.version;
  const cells = [...row.cells];
  [...own.cells].forEach((cell, place) => {
    if (place > 0 && !cell.isEqualNode(cells[place])) cell.replaceWith(cells[place]);
  });
  if (!fresh) return;
  own.classList.remove("fresh");
  requestAnimationFrame(() => own.classList.add("fresh"));
}

// Look at the service soon; many events make one look.
function refresh() {
  if (timer || document.hidden) return;
  timer = setTimeout(() => {
    timer = 0;
    if (request) refresh();
    else load(location.href, { fresh: true });
  }, Math.max(GATHER_MS, earliest - performance.now()));
}

listen((type) => {
  if (type !== "series") refresh();
});

function labelOf(cell) {
  const link = cell.querySelector("a");
  if (link) return link.getAttribute("aria-label");
  const rule = results().querySelector("thead tr").cells[cell.cellIndex].textContent;
  return `${rule}: ${WORDS[cell.className.split(" ").at(-1)] ?? cell.textContent}`;
}

// -- filters, all in the address ------------------------------------------------------------

function addressOfForm() {
  const fields = [...new FormData(form)].filter(([name, value]) => value && !(name === "sort" && value === "path"));
  const query = new URLSearchParams(fields).toString();
  return query ? `/trials?${query}` : "/trials";
}

function go(address, { replaceState = false } = {}) {
  if (replaceState) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  return load(address).then(() => {
    results().scrollTop = 0;
  });
}

function fillForm() {
  const query = new URLSearchParams(location.search);
  for (const field of form.elements) {
    if (field.name) field.value = query.get(field.name) ?? (field.name === "sort" ? "path" : "");
  }
}

let typing = 0;
let typed = false; // one entry of the history for one search
search.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => {
    go(addressOfForm(), { replaceState: typed });
    typed = true;
  }, TYPING_MS);
});
search.addEventListener("blur", () => (typed = false));
for (const select of form.querySelectorAll("select")) {
  select.addEventListener("change", () => go(addressOfForm()));
}
form.addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(typing);
  go(addressOfForm()).then(() => rows()[0]?.focus());
});
document.getElementById("apply").hidden = true;
form.classList.add("foldable"); // on narrow screens
document.getElementById("filters-button").addEventListener("click", (event) => {
  const isOpen = form.classList.toggle("open");
  event.currentTarget.setAttribute("aria-expanded", String(isOpen));
});
document.getElementById("content").addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || link.pathname !== "/trials") return;
  event.preventDefault();
  const isHeading = link.closest("thead");
  const text = link.textContent;
  go(link.pathname + link.search).then(() => {
    fillForm();
    if (isHeading) [...document.querySelectorAll("thead a")].find((other) => other.textContent.slice(0, 4) === text.slice(0, 4))?.focus();
  });
});
addEventListener("popstate", () => {
  fillForm();
  load(location.href);
});

// -- keyboard and selection -----------------------------------------------------------------

function focusedRow() {
  return document.activeElement?.closest?.("#rows > tr");
}

// Rows that get the focus stay clear of the sticky heading.
function measureHead() {
  const head = results().querySelector("thead");
  if (head) results().style.setProperty("--head", `${head.offsetHeight}px`);
}

function keepTabStop(row = focusedRow() ?? rows()[0]) {
  for (const other of document.querySelectorAll("#rows > tr[tabindex='0']")) {
    if (other !== row) other.tabIndex = -1;
  }
  if (row) row.tabIndex = 0;
}

function focusRow(row) {
  if (!row) return;
  keepTabStop(row);
  row.focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
}

function move(by) {
  const own = focusedRow();
  const all = rows();
  if (!own) focusRow(all[by > 0 ? 0 : all.length - 1]);
  else focusRow(all[all.indexOf(own) + by]);
}

function toggle(row) {
  const id = idOf(row);
  if (selected.has(id)) selected.delete(id);
  else if (selected.size < MAX_SELECTED) selected.set(id, row.querySelector("th a").textContent);
  showSelection();
}

function showSelection() {
  for (const row of rows()) {
    const on = selected.has(idOf(row));
    if (on) row.setAttribute("aria-selected", "true");
    else row.removeAttribute("aria-selected");
    row.querySelector("input").checked = on;
  }
  picked.hidden = selected.size === 0;
  const full = selected.size === MAX_SELECTED ? ", which is the most" : "";
  picked.querySelector("[role=status]").textContent = `${selected.size} selected${full}`;
  const [first, ...others] = selected.keys();
  const query = others.length ? `?with=${others.join(",")}` : "";
  document.getElementById("compare").href = `/trials/${first ?? ""}${query}`;
}

for (const [key, by] of [["j", 1], ["ArrowDown", 1], ["k", -1], ["ArrowUp", -1]]) {
  onKey(key, () => move(by));
}
onKey("Home", () => (focusedRow() ? focusRow(rows()[0]) : false));
onKey("End", () => (focusedRow() ? focusRow(rows().at(-1)) : false));
onKey("Enter", (event) => {
  const row = focusedRow();
  if (!row || event.target !== row) return false;
  row.querySelector("th a").click();
});
onKey("x", () => (focusedRow() ? toggle(focusedRow()) : false));
onKey("c", () => (selected.size ? document.getElementById("compare").click() : false));
onKey("/", () => search.select() ?? search.focus());
onKey("Escape", () => {
  if (!selected.size) return false;
  selected.clear();
  showSelection();
});
search.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !search.value) search.blur();
  if (event.key === "ArrowDown") focusRow(rows()[0]);
});
document.getElementById("unpick").addEventListener("click", () => {
  selected.clear();
  showSelection();
});
results().addEventListener("click", (event) => {
  const row = event.target.closest("#rows > tr");
  if (!row || event.target.closest("a")) return;
  if (event.target.closest(".pick")) toggle(row);
  else focusRow(row);
});
results().addEventListener("pointerover", (event) => {
  const cell = event.target.closest("td.v");
  if (cell && !cell.title) cell.title = labelOf(cell);
});
results().addEventListener("focusin", (event) => {
  if (event.target.matches("#rows > tr")) keepTabStop(event.target);
});
showSelection();
measureHead();

// The list of rules: a search that filters the rows, kept in the address.
import { onKey } from "./page.js";

const search = document.getElementById("search");
const used = document.getElementById("used");
const rows = [...document.querySelectorAll("#rules > tr")].map((row) => ({ row, text: row.textContent.toLowerCase() }));

function show() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const { row, text } of rows) {
    row.hidden = !(words.every((word) => text.includes(word)) && (!used.checked || "used" in row.dataset));
    count += !row.hidden;
  }
  document.getElementById("count").textContent = count === rows.length ? `${count} rules` : `${count} of ${rows.length} rules`;
  const query = new URLSearchParams();
  if (search.value) query.set("text", search.value);
  if (used.checked) query.set("used", "1");
  history.replaceState(null, "", `/rules${query.size ? `?${query}` : ""}`);
}

const query = new URLSearchParams(location.search);
search.disabled = false;
search.value = query.get("text") ?? "";
used.checked = query.get("used") === "1";
search.addEventListener("input", show);
used.addEventListener("change", show);
onKey("/", () => search.focus());
show();

// Filters the rows by text and outcome. The page reads without it.
"use strict";

const rows = [...document.querySelectorAll("tr.row")].map((row) => ({
  row,
  text: row.textContent.toLowerCase(),
}));
const filter = document.getElementById("filter");
const outcome = document.getElementById("outcome");

function show() {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const { row, text } of rows) {
    const fits = !outcome.value || row.dataset.outcome === outcome.value;
    row.hidden = !(fits && words.every((word) => text.includes(word)));
    shown += !row.hidden;
  }
  document.getElementById("count").textContent = `${shown} of ${rows.length} trials`;
}

filter.addEventListener("input", show);
outcome.addEventListener("input", show);
document.querySelector(".filters").hidden = false;
show();

// What a reader can do with a chart: choose a line, and ask for values. The page reads without it.
"use strict";

class Chart {
  constructor(figure) {
    this.lines = JSON.parse(figure.querySelector("script").textContent);
    this.box = figure.querySelector(".box");
    this.plot = this.box.querySelector("svg");
    this.said = figure.querySelector(".said");
    this.buttons = [...figure.querySelectorAll("button[data-line]")];
    this.cursor = this.box.appendChild(document.createElement("span"));
    this.cursor.className = "cursor";
    this.cursor.hidden = true;
    this.said.textContent = "Point at the chart, or use the arrow keys on it, to read values.";
    this.chosen = null;
    this.at = -1;
    for (const button of this.buttons) {
      button.addEventListener("click", () => this.choose(Number(button.dataset.line)));
    }
    this.box.addEventListener("pointermove", (event) => this.point(event));
    this.box.addEventListener("pointerdown", (event) => this.point(event));
    this.box.addEventListener("keydown", (event) => this.key(event));
  }

  choose(line) {
    this.chosen = this.chosen === line ? null : line;
    this.at = -1;
    for (const button of this.buttons) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.line) === this.chosen));
    }
    this.plot.classList.toggle("choosing", this.chosen !== null);
    for (const group of this.plot.querySelectorAll("[data-line]")) {
      const chosen = Number(group.dataset.line) === this.chosen;
      group.classList.toggle("chosen", chosen);
    }
  }

  point(event) {
    const place = this.plot.getBoundingClientRect();
    const x = event.clientX - place.left;
    const y = event.clientY - place.top;
    let nearest = Infinity;
    let found = null;
    this.lines.forEach((line, number) => {
      if (this.chosen !== null && number !== this.chosen) return;
      line.points.forEach((point, at) => {
        const across = (point[0] / 1000) * place.width - x;
        const down = this.chosen === null ? (point[1] / 1000) * place.height - y : 0;
        const distance = across * across + down * down;
        if (distance < nearest) {
          nearest = distance;
          found = [number, at];
        }
      });
    });
    if (found) this.say(...found);
  }

  key(event) {
    const number = this.chosen ?? 0;
    const last = this.lines[number].points.length - 1;
    const to = { ArrowLeft: this.at - 1, ArrowRight: this.at + 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.say(number, Math.min(Math.max(to, 0), last));
  }

  say(number, at) {
    const [x, y, step, measured, limit, met] = this.lines[number].points[at];
    this.at = at;
    this.cursor.hidden = false;
    this.cursor.style.left = `${x / 10}%`;
    this.cursor.style.setProperty("--y", `${y / 10}%`);
    const end = met ? ": condition met" : "";
    this.said.textContent =
      `Step ${step}: ${measured}, limit ${limit}${end}. ${this.lines[number].name}`;
  }
}

function reveal() {
  const target = document.getElementById(location.hash.slice(1));
  if (target instanceof HTMLDetailsElement) target.open = true;
}

for (const figure of document.querySelectorAll("figure.chart")) new Chart(figure);
addEventListener("hashchange", reveal);
addEventListener("beforeprint", () => {
  for (const one of document.querySelectorAll("article > details")) one.open = true;
});
reveal();

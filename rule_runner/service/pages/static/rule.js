// What a rule measured on the trials where it fired: the worst curve of each, and its worst value.
import { Chart, View, least, most, number } from "./charts.js";
import { MEASURED } from "./curves.js";
import "./page.js";

const POINTS = 200;
const TRIALS = 24; // whose curves are fetched
const DRAWN = 8;
const AT_ONCE = 3;

const name = document.getElementById("rule").dataset.name;
const rows = [...document.querySelectorAll("#trials tr[data-trial]")].slice(0, TRIALS);
const problem = document.getElementById("curves-problem");
const view = new View();
const charts = new Map();
const groups = new Map();

async function fetchRow(row) {
  const response = await fetch(`/api/v1/trials/${row.dataset.trial}/series?points=${POINTS}`);
  if (!response.ok) return;
  const { series } = await response.json();
  const own = series.filter((item) => item.kind === MEASURED && item.rule === name);
  for (const item of own) {
    const curves = groups.get(item.quantity) ?? [];
    // The first one of a trial is its worst.
    if (!curves.some((curve) => curve.trial === row)) {
      curves.push({ ...item, trial: row, key: row.dataset.trial, index: rows.indexOf(row), label: `${row.dataset.name}: ${item.name}` });
    }
    groups.set(item.quantity, curves);
  }
  if (own.length) row.querySelector("[data-worst]").textContent = worst(own[0]);
}

function worst(item) {
  const odd = item.marks.find(([step]) => item.met.includes(step));
  if (odd) return odd[1];
  const values = item.values.filter((value) => value !== null);
  if (!values.length) return "";
  return number(item.worse === "below" ? least(values) : most(values));
}

function show() {
  const steps = [...groups.values()].flat().flatMap((curve) => (curve.steps.length ? [curve.steps[0], curve.steps.at(-1)] : []));
  if (!steps.length) return;
  const [low, high] = [least(steps), most(steps)];
  view.full = low < high ? [low, high] : [low - 1, high + 1];
  for (const [quantity, curves] of groups) {
    let chart = charts.get(quantity);
    if (!chart) {
      chart = new Chart(view, quantity, { log: curves[0].log });
      charts.set(quantity, chart);
      document.getElementById("charts").append(chart.node);
    }
    const drawn = curves.slice(0, DRAWN);
    chart.note.textContent = curves.length > DRAWN ? `${DRAWN} of ${curves.length} trials` : "the worst tensor of each trial";
    chart.setCurves(drawn.map((curve, index) => ({ ...curve, index })));
  }
}

async function work(queue) {
  for (let row = queue.shift(); row; row = queue.shift()) {
    await fetchRow(row).catch(() => null);
    show();
  }
}

if (problem) {
  const queue = [...rows];
  await Promise.all(Array.from({ length: AT_ONCE }, () => work(queue)));
  problem.replaceChildren();
  if (!groups.size) {
    const note = problem.appendChild(document.createElement("p"));
    note.className = "notice";
    note.textContent = "The outputs of these trials hold nothing that it measured.";
  }
}

// The page of a trial: curves that grow, findings on them, runs laid over each other, actions.
import { Chart, TimeView, View, least, most, number } from "./charts.js";
import { MEASURED, Run } from "./curves.js";
import { listen } from "./live.js";
import { onKey, post, showTimes, toast } from "./page.js";

const SMOOTHER = 0.2;
const GATHER_MS = 400;
const FIRST_CHARTS = 12;
const SUGGESTED = 12;
const SUGGEST_MS = 200;
const KINDS = { loss: "Loss", learning_rate: "Learning rate", norm: "Norms", utilisation: "Utilisation" };
const ORDER = ["loss", "fired", "learning_rate", "norm", "metric", "utilisation", "scalar", MEASURED];
// The charts of a profile, in this order: heading, and what it notes.
const PROFILE = {
  step_time: ["Step time", "seconds"],
  phase: ["Phases of steps", "seconds; rest: what no event explains"],
  gpu: ["GPU utilisation", "%"],
  cpu: ["CPU utilisation", "%, mean of the cores"],
  gpu_memory: ["GPU memory", "% in use"],
  memory: ["Memory", "% in use"],
  io_wait: ["I/O wait", "%, mean of the cores"],
  disk: ["Disk", ""],
  network: ["Network", ""],
};
const MOST_CURVES = 16;
const PROFILE_MS = 30000; // between two looks at a profile that grows
const GROWING_MS = 300000; // how old the last data of such a profile may be
const MODE = /(^|[/_. -])(train(ing)?|val(id(ation)?)?|eval(uation)?|test)([/_. -])/i;

const page = document.getElementById("trial");
const id = Number(page.dataset.id);
const view = new View();
const times = new TimeView();
const boards = {
  steps: { view, charts: new Map(), holder: document.getElementById("charts") },
  times: { view: times, charts: new Map(), holder: document.getElementById("profile-charts") },
};
const problem = document.getElementById("curves-problem");
const profileNode = document.getElementById("profile");
const runs = [...document.querySelectorAll(".runs li[data-run]")].map(
  (item, index) => new Run({ id: Number(item.dataset.run), name: item.dataset.name, index }, changed),
);
const profile = profileNode && new Run({ id: Number(profileNode.dataset.profile), name: "", index: 0, isProfile: true }, changed);
let showsAll = false;
let drawing = 0;

// -- charts ---------------------------------------------------------------------------------

function changed() {
  if (!drawing) {
    drawing = requestAnimationFrame(() => {
      drawing = 0;
      show();
    });
  }
}

// The chart that a curve belongs to: a name to sort by, a heading, and what it notes.
function groupOf(curve) {
  if (curve.kind === MEASURED) {
    const fired = curve.met.length > 0;
    return { key: `${curve.rule} ${curve.quantity}`, order: fired ? "fired" : MEASURED, heading: curve.rule, note: curve.quantity, log: curve.log };
  }
  if (curve.kind in KINDS) return { key: curve.kind, order: curve.kind, heading: KINDS[curve.kind] };
  // A metric of the training and of the validation are on one chart.
  const name = curve.name.replace(MODE, "$1");
  return { key: `${curve.kind} ${name}`, order: curve.kind, heading: name };
}

// The chart of a profile that a curve belongs to. Each process has its own chart of phases.
function profileGroupOf(curve) {
  if (curve.kind === MEASURED) return groupOf(curve);
  const [heading, note] = PROFILE[curve.kind];
  const node = curve.kind === "phase" ? curve.name.split(" ")[0] : "";
  return { key: `${curve.kind} ${node}`, order: curve.kind, heading: node ? `${heading}, ${node}` : heading, note, unit: curve.unit };
}

// What rules measured in windows of time, at the beginnings of the windows.
function overTime(curve) {
  const { begin_us: begin, length_us: length } = curve.windows;
  const seconds = (window) => ((begin + window * length) / 1000 - profile.origin) / 1000;
  return { ...curve, steps: curve.steps.map(seconds), met: curve.met.map(seconds), marks: curve.marks.map(([window, text]) => [seconds(window), text]) };
}

function profileGroups() {
  if (!profile) return [];
  const found = new Map();
  const measured = profile.id === id && profile.origin !== null ? [...runs[0].curves].filter(([, curve]) => curve.windows) : [];
  const all = [...profile.curves, ...measured.map(([key, curve]) => [key, overTime(curve)])];
  for (const [key, curve] of all) {
    const group = profileGroupOf(curve);
    if (!found.has(group.key)) found.set(group.key, { ...group, names: [], curves: [] });
    const own = found.get(group.key);
    own.names.push(key);
    const label = curve.kind === "phase" ? curve.name.slice(curve.name.indexOf(" ") + 1) : curve.name;
    own.curves.push({ ...curve, key, index: own.names.length - 1, run: 0, label });
  }
  const order = [...Object.keys(PROFILE), "fired", MEASURED];
  return [...found.values()].sort((one, other) => order.indexOf(one.order) - order.indexOf(other.order));
}

function groups() {
  const found = new Map();
  for (const run of runs) {
    for (const [key, curve] of run.curves) {
      if (curve.windows && profile) continue;
      const group = groupOf(curve);
      if (!found.has(group.key)) found.set(group.key, { ...group, names: [], curves: [] });
      const own = found.get(group.key);
      // Of several runs, only the worst of what each rule measured.
      if (runs.length > 1 && curve.kind === MEASURED && own.curves.some((other) => other.run === run.index)) continue;
      if (ORDER.indexOf(group.order) < ORDER.indexOf(own.order)) own.order = group.order;
      if (!own.names.includes(key)) own.names.push(key);
      own.curves.push({ ...curve, key: `${run.id} ${key}`, index: own.names.indexOf(key), run: run.index, label: labelOf(run, curve) });
    }
  }
  return [...found.values()].sort((one, other) => ORDER.indexOf(one.order) - ORDER.indexOf(other.order));
}

function labelOf(run, curve) {
  return runs.length > 1 ? `${run.name}: ${curve.name}` : curve.name;
}

function show() {
  const all = groups();
  const quiet = all.filter((group) => group.order === MEASURED);
  const loud = all.filter((group) => group.order !== MEASURED);
  const shown = showsAll ? [...loud, ...quiet] : loud.slice(0, FIRST_CHARTS);
  draw(boards.steps, shown, all);
  const hidden = profile ? showProfile() : 0;
  explain(all.length, all.length - shown.length + hidden);
  compare(all);
}

// Draw the charts of groups; the axis shows the steps of all of them.
function draw({ view, charts, holder }, shown, all) {
  const steps = all.flatMap((group) => group.curves.flatMap((curve) => (curve.steps.length ? [curve.steps[0], curve.steps.at(-1)] : [])));
  if (steps.length) {
    const [low, high] = [least(steps), most(steps)];
    view.full = low < high ? [low, high] : [low - 1, high + 1];
  }
  for (const [key, chart] of charts) {
    if (!shown.some((group) => group.key === key)) {
      chart.remove();
      charts.delete(key);
    }
  }
  shown.forEach((group, place) => {
    let chart = charts.get(group.key);
    if (!chart) {
      chart = new Chart(view, group.heading, group);
      chart.severalRuns = runs.length > 1 && view !== times;
      charts.set(group.key, chart);
    }
    if (chart.node !== holder.children[place]) holder.insertBefore(chart.node, holder.children[place] ?? null);
    chart.setCurves(group.curves);
  });
}

// Draw the charts of the profile; return how many stay hidden.
function showProfile() {
  if (profile.origin !== null && times.origin !== profile.origin) {
    times.origin = profile.origin;
    document.getElementById("profile-origin").textContent = `Times since ${new Date(times.origin).toISOString().slice(0, 19).replace("T", " ")} UTC.`;
    readTimes();
    readFindings();
  }
  const all = profileGroups();
  const shown = showsAll ? all : all.filter((group) => group.order !== MEASURED);
  draw(boards.times, shown, all);
  const notes = profile.problem ? [profile.problem] : [];
  if (profile.truncated) notes.push(`${profile.truncated.toLocaleString("en")} more curves are left out: of each kind, the first ${MOST_CURVES} are shown.`);
  if (!all.length && !profile.problem) {
    notes.push(profile.complete ? "No profile yet. A file of system metrics is complete after a minute." : "Reading the profile …");
  }
  say(document.getElementById("profile-problem"), notes);
  return all.length - shown.length;
}

// Replace the notices of a place, if they have changed.
function say(place, notes) {
  const texts = [...new Set(notes)];
  const said = [...place.querySelectorAll(".notice")].map((note) => note.textContent);
  if (texts.length && said.join("\n") === texts.join("\n")) return;
  place.replaceChildren(
    ...texts.map((text) => {
      const note = document.createElement("p");
      note.className = "notice";
      note.textContent = text;
      return note;
    }),
  );
}

function explain(count, hidden) {
  const notes = runs.filter((run) => run.problem).map((run) => run.problem);
  if (!count && !notes.length && runs.some((run) => !run.complete)) {
    notes.push("Reading the curves …");
  } else if (!count && !notes.length && profile?.id !== id) {
    notes.push("No curves yet. They appear when the training saves losses, metrics or other numbers, or when a rule has measured something.");
  }
  say(problem, notes);
  let more = document.getElementById("more-charts");
  if (hidden > 0 && !more) {
    more = document.createElement("p");
    more.id = "more-charts";
    more.className = "more";
    const button = more.appendChild(document.createElement("button"));
    button.type = "button";
    button.addEventListener("click", () => {
      showsAll = true;
      show();
    });
    (boards.times.holder ?? boards.steps.holder).after(more);
  }
  if (more) {
    more.hidden = hidden <= 0;
    more.firstElementChild.textContent = `Show ${hidden} more: what rules without issues measured`;
    if (hidden > 0 && runs.some((run) => run.truncated)) more.title = "Of each measured quantity, the worst tensors are shown.";
  }
}

// The last values of all runs side by side.
function compare(all) {
  const body = document.getElementById("compare-values");
  if (!body) return;
  const names = new Map();
  for (const group of all) {
    for (const curve of group.curves) {
      if (curve.kind === MEASURED) continue;
      if (!names.has(curve.name)) names.set(curve.name, []);
      names.get(curve.name)[curve.run] = curve;
    }
  }
  body.replaceChildren();
  for (const [name, curves] of names) {
    const row = body.insertRow();
    const head = row.appendChild(document.createElement("th"));
    head.scope = "row";
    head.textContent = name;
    for (const run of runs) {
      const cell = row.insertCell();
      cell.className = "num";
      const curve = curves[run.index];
      const last = curve?.steps.at(-1);
      if (last === undefined) {
        cell.textContent = "–";
        continue;
      }
      const mark = curve.marks.find(([step]) => step === last);
      cell.textContent = mark ? mark[1] : number(curve.values.at(-1));
      const where = cell.appendChild(document.createElement("small"));
      where.textContent = `step ${last.toLocaleString("en")}`;
    }
  }
}

// -- tools, kept in the address -------------------------------------------------------------

const log = document.getElementById("log");
const smooth = document.getElementById("smooth");
const reset = document.getElementById("reset");
const resetTimes = document.getElementById("reset-times");

const rangeOf = ({ range }) => (range ? range.map(Math.round).join("-") : "");

function keepInAddress() {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of [["log", view.log ? "1" : ""], ["smooth", view.smooth ? String(view.smooth) : ""], ["steps", rangeOf(view)], ["times", times.origin ? rangeOf(times) : (query.get("times") ?? "")]]) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const text = query.toString().replaceAll("%2C", ",");
  history.replaceState(null, "", `${location.pathname}${text ? `?${text}` : ""}${location.hash}`);
}

function readAddress() {
  const query = new URLSearchParams(location.search);
  log.checked = view.log = times.log = query.get("log") === "1";
  smooth.value = query.get("smooth") ?? "0";
  view.smooth = times.smooth = Number(smooth.value);
  const steps = (query.get("steps") ?? "").split("-").map(Number);
  if (steps.length === 2 && steps[0] < steps[1]) view.range = steps;
  reset.hidden = !view.range;
}

// Show the times of the address, in seconds after the first of the profile.
function readTimes() {
  const range = (new URLSearchParams(location.search).get("times") ?? "").split("-").map(Number);
  if (range.length === 2 && range[0] < range[1]) times.range = range;
  resetTimes.hidden = !times.range;
}

function changeBoth(fields) {
  view.change(fields);
  times.change(fields);
}

log.addEventListener("change", () => changeBoth({ log: log.checked }));
smooth.addEventListener("input", () => changeBoth({ smooth: Number(smooth.value) }));
view.addEventListener("change", keepInAddress);
for (const [ownView, button] of [[view, reset], [times, resetTimes]]) {
  button?.addEventListener("click", () => ownView.zoom());
  ownView.addEventListener("zoom", () => {
    if (button) button.hidden = !ownView.range;
    keepInAddress();
  });
}
onKey("l", () => log.click());
onKey("0", () => {
  view.zoom();
  times.zoom();
});
for (const [key, by] of [["s", SMOOTHER], ["S", -SMOOTHER]]) {
  onKey(key, () => {
    smooth.value = String(Number(smooth.value) + by);
    smooth.dispatchEvent(new Event("input"));
  });
}

// -- findings -------------------------------------------------------------------------------

const findings = document.getElementById("findings");

function readFindings() {
  const buttons = [...findings.querySelectorAll("button")];
  const entries = buttons.map((button) => ({
    ...placeOf(button),
    kind: button.dataset.kind,
    isTimed: isTimed(button),
    text: `${button.dataset.job} ${button.querySelector(".what").textContent}`.trim(),
  }));
  view.findings = entries.filter((finding) => !finding.isTimed);
  times.findings = entries.filter((finding) => finding.isTimed);
  view.change({}, "mark");
  times.change({}, "mark");
  offer();
}

// Whether a finding is of a window of time, which charts of the profile show.
function isTimed(button) {
  return Boolean(profile) && "start" in button.dataset;
}

// The step of a finding; of a window its beginning and its end, in seconds as on the charts.
function placeOf(button) {
  if (!isTimed(button)) return { step: Number(button.dataset.step) };
  const [step, end] = [button.dataset.start, button.dataset.end].map((time) => (Number(time) - times.origin) / 1000);
  return { step, end };
}

function point(button) {
  const own = button && placeOf(button);
  const timed = button && isTimed(button);
  view.change({ highlight: own && !timed ? own.step : null }, "mark");
  times.change({ highlight: timed ? own.step : null, highlightEnd: timed ? own.end : null }, "mark");
}

const pressed = () => findings.querySelector("button[aria-pressed=true]");
for (const kind of ["pointerover", "focusin"]) {
  findings.addEventListener(kind, (event) => point(event.target.closest("button") ?? pressed()));
}
for (const kind of ["pointerleave", "focusout"]) findings.addEventListener(kind, () => point(pressed()));
findings.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  const own = pressed();
  own?.setAttribute("aria-pressed", "false");
  if (own !== button) button.setAttribute("aria-pressed", "true");
  point(pressed());
  offer();
});

// Only the finding that is pressed can be acknowledged, unless the job file mutes it.
function offer() {
  const actions = document.getElementById("finding-actions");
  const button = pressed();
  const moment = document.getElementById("moment");
  moment.hidden = !button || !("command" in button.dataset);
  if (!moment.hidden) {
    moment.querySelector("code").textContent = button.dataset.command;
    const traces = button.dataset.traces ? button.dataset.traces.split("\n") : [];
    moment.querySelector("[data-moment=traces]").hidden = !traces.length;
    moment.querySelector("ul").replaceChildren(
      ...traces.map((path) => {
        const entry = document.createElement("li");
        entry.textContent = path;
        return entry;
      }),
    );
  }
  if (!actions) return;
  actions.hidden = !button || "fixed" in button.dataset;
  if (!button) return;
  for (const action of actions.children) {
    action.dataset.finding = button.dataset.finding;
    action.dataset.what = `${button.dataset.job} at step ${button.dataset.step}`;
  }
  actions.querySelector("[data-withdraw]").hidden = !("marked" in button.dataset);
}
document.getElementById("moment").addEventListener("click", async (event) => {
  const button = pressed();
  const does = event.target.closest("button")?.dataset.moment;
  if (!button || !does) return;
  if (does === "zoom") {
    const { step, end } = placeOf(button);
    times.zoom(step - (end - step), end + (end - step));
    boards.times.holder.scrollIntoView({ block: "nearest" });
    return;
  }
  try {
    await navigator.clipboard.writeText(button.dataset.command);
    toast("Copied.");
  } catch {
    toast("The browser does not let this page copy. Select the command and copy it.");
  }
});
for (const [key, by] of [["n", 1], ["p", -1]]) {
  onKey(key, () => {
    const buttons = [...findings.querySelectorAll("button")];
    const at = buttons.indexOf(document.activeElement);
    buttons[at < 0 ? 0 : Math.min(Math.max(at + by, 0), buttons.length - 1)]?.focus();
  });
}

// -- what happens meanwhile -----------------------------------------------------------------

const PARTS = ["head", "actions", "problem", "incidents", "jobs", "findings", "findings-count", "files", ...(profile ? ["profile-of"] : [])];
// As the server sent them: what people open and press does not count.
const sent = new Map(PARTS.map((part) => [part, document.getElementById(part).cloneNode(true)]));
const parser = new DOMParser();
let timer = 0;

async function refresh() {
  timer = 0;
  let next;
  try {
    const response = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!response.ok) return;
    next = parser.parseFromString(await response.text(), "text/html");
  } catch {
    return; // the mark at the top says that the connection is lost
  }
  if (!next.getElementById("trial")) {
    location.reload();
    return;
  }
  for (const part of PARTS) replace(part, next.getElementById(part));
  const before = page.dataset.state;
  page.dataset.state = next.getElementById("trial").dataset.state;
  showTimes(page);
  readFindings();
  if (before !== page.dataset.state) runs[0].load({ whole: true });
}

function replace(part, next) {
  const own = document.getElementById(part);
  if (sent.get(part).isEqualNode(next)) return;
  sent.set(part, next.cloneNode(true));
  const focused = own.contains(document.activeElement) ? indexIn(own, document.activeElement) : -1;
  const open = new Map([...own.querySelectorAll("li[id] > details")].map((node) => [node.parentElement.id, node.open]));
  const folded = own.querySelector(".folded")?.open;
  const chosen = part === "findings" ? pressed()?.dataset.finding : undefined;
  own.replaceChildren(...next.childNodes);
  if (chosen) own.querySelector(`[data-finding="${CSS.escape(chosen)}"]`)?.setAttribute("aria-pressed", "true");
  for (const node of own.querySelectorAll("li[id] > details")) {
    if (open.has(node.parentElement.id)) node.open = open.get(node.parentElement.id);
  }
  if (folded !== undefined && own.querySelector(".folded")) own.querySelector(".folded").open = folded;
  if (focused >= 0) own.querySelectorAll("button, summary, a")[focused]?.focus({ preventScroll: true });
}

function indexIn(own, node) {
  return [...own.querySelectorAll("button, summary, a")].indexOf(node);
}

function refreshSoon() {
  if (!timer && !document.hidden) timer = setTimeout(refresh, GATHER_MS);
}

listen((type, data) => {
  if (type === "reload") {
    refreshSoon();
    for (const run of runs) run.load();
    profile?.load();
  } else if (type === "series") {
    runs.find((run) => run.id === data.id)?.load();
    if (profile?.id === data.id) profile.load();
  } else if (profile && [data.id, data.trial].includes(profile.id)) {
    refreshSoon();
    profile.load();
    if (profile.id === id) runs[0].load();
  } else if (data.id === id || data.trial === id) {
    refreshSoon();
    runs[0].load();
  } else {
    runs.find((run) => run.id === data.id)?.load();
  }
});

// Rules may have ended before the training: a profile that grows is looked at in any case.
setInterval(() => {
  const last = profile?.lastStep ?? 0;
  if (!document.hidden && Date.now() - last < GROWING_MS) profile.load();
}, PROFILE_MS);

// -- laying another run over this one -------------------------------------------------------

const overlay = document.getElementById("overlay");
const suggestions = document.getElementById("overlay-runs");
let suggesting = 0;
let suggested = new Map();

async function suggest() {
  const query = new URLSearchParams({ text: overlay.value, limit: SUGGESTED, sort: "-changed" });
  const response = await fetch(`/api/v1/trials?${query}`).catch(() => null);
  if (!response?.ok) return;
  const { trials } = await response.json();
  suggested = new Map(trials.filter((trial) => !runs.some((run) => run.id === trial.id)).map((trial) => [trial.path, trial.id]));
  suggestions.replaceChildren(
    ...[...suggested.keys()].map((path) => {
      const option = document.createElement("option");
      option.value = path;
      return option;
    }),
  );
}

function add(number) {
  const query = new URLSearchParams(location.search);
  query.set("with", [...runs.slice(1).map((run) => run.id), number].join(","));
  location.assign(`${location.pathname}?${query.toString().replaceAll("%2C", ",")}`);
}

overlay?.addEventListener("focus", suggest, { once: true });
overlay?.addEventListener("input", () => {
  if (suggested.has(overlay.value)) {
    add(suggested.get(overlay.value));
    return;
  }
  clearTimeout(suggesting);
  suggesting = setTimeout(suggest, SUGGEST_MS);
});
overlay?.addEventListener("keydown", async (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  await suggest();
  const [first] = suggested.values();
  if (first === undefined) toast("No other trial has this in its path.");
  else add(first);
});
onKey("o", () => overlay?.focus());

// -- actions --------------------------------------------------------------------------------

const dialog = document.getElementById("acknowledge");
const form = dialog.querySelector("form");
let target = null;

// Ask for the reason of an acknowledgement, or of its withdrawal.
function ask(button) {
  const { acknowledge, withdraw, rule, what } = button.dataset;
  const kind = acknowledge ?? withdraw;
  const word = withdraw ? "Withdraw" : "Acknowledge";
  target = { withdraw: Boolean(withdraw), [kind]: button.dataset[kind] };
  document.getElementById("acknowledge-title").textContent = word;
  document.getElementById("acknowledge-what").textContent = what ?? `All findings of ${rule} on this trial.`;
  form.querySelector("button.primary").textContent = word;
  for (const field of form.querySelectorAll("[data-only=acknowledge]")) field.hidden = target.withdraw;
  form.querySelector(".status").textContent = "";
  form.reset();
  dialog.showModal();
}

for (const [key, action] of [["a", "acknowledge"], ["w", "withdraw"]]) {
  onKey(key, () => {
    const button = document.querySelector(`#finding-actions:not([hidden]) [data-${action}]:not([hidden])`);
    if (button) ask(button);
  });
}
page.addEventListener("click", async (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.acknowledge || button.dataset.withdraw) {
    ask(button);
  } else if (button.dataset.action) {
    button.disabled = true;
    try {
      await post(`/api/v1/trials/${id}:${button.dataset.action}`, {});
      toast(button.dataset.action === "cancel" ? "The evaluation is being cancelled." : "The trial is evaluated again.");
      refreshSoon();
    } catch (error) {
      toast(error.message);
    }
    button.disabled = false;
  }
});
dialog.querySelector("[data-close]").addEventListener("click", () => dialog.close());
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const fields = new FormData(form);
  const button = form.querySelector("button.primary");
  button.disabled = true;
  try {
    await post(`/api/v1/trials/${id}:acknowledge`, {
      ...target,
      reason: fields.get("reason").trim(),
      ...(target.withdraw ? {} : { until: fields.get("until") || null, mute: fields.has("mute") }),
    });
    dialog.close();
    toast(target.withdraw ? "Withdrawn." : fields.has("mute") ? "Muted." : "Acknowledged.");
    await refresh();
  } catch (error) {
    form.querySelector(".status").textContent = error.message;
  }
  button.disabled = false;
});

function reveal() {
  const entry = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const details = entry?.querySelector(":scope > details");
  if (!details) return;
  const folded = entry.closest(".folded");
  if (folded) folded.open = true;
  details.open = true;
  entry.scrollIntoView({ block: "nearest" });
}

addEventListener("hashchange", reveal);
readAddress();
readFindings();
reveal();
for (const run of runs) run.load();
profile?.load();

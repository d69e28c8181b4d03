// Charts of curves over steps or time, drawn by uPlot: marks of findings, limits, zoom, keyboard, and a
// table of values that says the same in words.
/* global uPlot */

const COLOURS = 8;
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 5], [1, 2]];
const MARKS_DRAWN = 60;
const AXIS_WIDTH = 60;
const ZOOM = 0.6;
const WIDE = 1e6; // between the highest and the lowest value
const LOG_TICKS = 6;
const SHADED = 0.7; // of the plot, at most
const PREFIXES = ["", "k", "M", "G", "T", "P"];
const [MINUTE, HOUR, DAY] = [60, 3600, 86400];
const SECONDS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE]
  .concat([HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR], [1, 2, 5, 10, 30, 100, 365].map((days) => days * DAY));
const probe = document.createElement("span");
probe.hidden = true;

// Return a colour of the style sheet as the present theme has it.
function colour(name) {
  if (!probe.isConnected) document.body.append(probe);
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}

// Write a number briefly: 0.5231, 12,500, 3.2e-8.
export function number(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(2).replace("e+", "e").replace(/\.?0+e/, "e");
  return value.toLocaleString("en", { maximumSignificantDigits: size >= 1000 ? 6 : 4 });
}

function tick(value) {
  if (value === null) return "";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e5)) return value.toExponential().replace("e+", "e").replace(/(\.\d)\d+e/, "$1e");
  return value.toLocaleString("en", { maximumSignificantDigits: 5 });
}

// Write bytes briefly: 980 B/s, 2.31 MB/s.
function bytes(value) {
  if (value === null || value === undefined) return "–";
  const power = Math.min(Math.max(Math.floor(Math.log10(Math.abs(value)) / 3) || 0, 0), PREFIXES.length - 1);
  return `${number(value / 1000 ** power)} ${PREFIXES[power]}B/s`;
}

// How values of a unit are written in tables, and at the ticks of an axis.
const FORMATS = { "B/s": { number: bytes, tick: bytes } };

const step = (value) => value.toLocaleString("en");

// The ticks of a logarithmic axis: powers of ten, or 1, 2 and 5 between few of them.
function logTicks(low, high) {
  const [first, end] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const factors = end - first <= 2 ? [1, 2, 5] : [1];
  const stride = Math.max(1, Math.ceil((end - first) / LOG_TICKS));
  const ticks = [];
  for (let power = first; power <= end; power += stride) {
    for (const factor of factors) ticks.push(Number(`${factor}e${power}`));
  }
  return ticks.filter((value) => value >= low && value <= high);
}

// What all charts of a page share: axes, smoothing, the steps that are shown, and findings.
export class View extends EventTarget {
  log = false;
  smooth = 0;
  range = null; // of steps; null: all
  full = [0, 1];
  findings = []; // {step, kind, text}
  highlight = null; // a step
  highlightEnd = null; // the end of what is highlighted, if that is longer than a step
  sync = "steps"; // charts with the same key show the same cursor
  increments = undefined; // of the ticks: those of uPlot

  // Write a place on the axis in a sentence, and at a tick.
  place(value) {
    return `step ${step(value)}`;
  }

  tick(value) {
    return Number.isInteger(value) ? step(value) : "";
  }

  span(low, high) {
    return `steps ${step(low)} to ${step(high)}`;
  }

  change(fields, kind = "change") {
    Object.assign(this, fields);
    this.dispatchEvent(new Event(kind));
  }

  // Show the steps from `low` to `high`, or all of them.
  zoom(low, high) {
    const isAll = low === undefined || high - low < 1e-9;
    this.change({ range: isAll ? null : [Math.max(low, this.full[0]), Math.min(high, this.full[1])] }, "zoom");
  }
}

// Places are seconds after a time, `origin`, in milliseconds since the epoch.
export class TimeView extends View {
  origin = 0;
  sync = "times";
  increments = SECONDS;

  place(value) {
    const time = new Date(this.origin + 1000 * value);
    const clock = Number.isNaN(time.getTime()) ? "" : ` (${time.toISOString().slice(11, 19)} UTC)`;
    return `${elapsed(value, this.digits)}${clock}`;
  }

  tick(value) {
    return elapsed(value, this.digits);
  }

  // Digits of a second that tell places apart.
  get digits() {
    const [low, high] = this.range ?? this.full;
    return Math.min(Math.max(2 - Math.floor(Math.log10(high - low)), 0), 3);
  }

  span(low, high) {
    return `from ${this.place(low)} to ${this.place(high)}`;
  }
}

// Write seconds as a clock does: 0:05, 0:05.25, 12:05, 1:12:05.
function elapsed(seconds, digits) {
  const size = Number(Math.abs(seconds).toFixed(digits));
  const two = (value) => String(Math.floor(value)).padStart(2, "0");
  const hours = Math.floor(size / HOUR);
  const minutes = hours ? two((size % HOUR) / MINUTE) : Math.floor(size / MINUTE);
  const rest = (size % MINUTE).toFixed(digits).padStart(digits ? digits + 3 : 2, "0");
  return `${seconds < 0 ? "-" : ""}${hours ? `${hours}:` : ""}${minutes}:${rest}`;
}

// Average exponentially, with the bias of the beginning removed.
function smoothed(values, weight) {
  let sum = 0;
  let total = 0;
  return values.map((value) => {
    if (value === null || value === undefined) return value;
    sum = sum * weight + value;
    total = total * weight + 1;
    return sum / total;
  });
}

export class Chart {
  // `heading`: what is drawn. Curves are set later.
  constructor(view, heading, { note = "", log = false, unit = "" } = {}) {
    this.view = view;
    this.format = FORMATS[unit] ?? { number, tick };
    this.heading = heading;
    this.isLog = log;
    this.curves = [];
    this.off = new Set();
    this.visible = false;
    this.dirty = true;
    this.plot = null;
    this.shape = "";
    this.build(note);
    view.addEventListener("change", () => this.draw({ anew: true }));
    view.addEventListener("zoom", () => this.rescale());
    view.addEventListener("mark", () => this.plot?.redraw(false));
    addEventListener("themechange", () => this.draw({ anew: true }));
  }

  build(note) {
    this.node = document.createElement("figure");
    this.node.className = "card chart";
    const caption = this.node.appendChild(document.createElement("figcaption"));
    caption.appendChild(document.createElement("strong")).textContent = this.heading;
    this.note = caption.appendChild(document.createElement("span"));
    this.note.className = "note";
    this.note.textContent = note;
    this.box = this.node.appendChild(document.createElement("div"));
    this.box.className = "plot";
    this.box.tabIndex = 0;
    this.box.setAttribute("role", "group");
    this.box.addEventListener("keydown", (event) => this.key(event));
    this.said = caption.appendChild(document.createElement("span"));
    this.said.className = "said";
    this.said.setAttribute("role", "status");
    const scroll = this.node.appendChild(document.createElement("div"));
    scroll.className = "legend-scroll";
    this.table = scroll.appendChild(document.createElement("table"));
    this.table.className = "legend";
    this.resizing = new ResizeObserver(() => this.resize());
    this.resizing.observe(this.box);
    this.looking = new IntersectionObserver(([entry]) => {
      this.visible = entry.isIntersecting;
      if (this.visible && this.dirty) this.draw();
    }, { rootMargin: "200px" });
    this.looking.observe(this.node);
  }

  // Show curves: {key, label, run, index, steps, values, marks, met, limit, worse}.
  setCurves(curves) {
    this.curves = curves;
    this.legend();
    this.describe();
    this.draw();
  }

  draw({ anew = false } = {}) {
    this.dirty = true;
    if (anew) this.shape = "";
    if (!this.visible || !this.box.clientWidth) return;
    this.dirty = false;
    const shape = JSON.stringify(this.curves.map((curve) => [curve.key, this.off.has(curve.key)]));
    const data = this.data();
    if (this.plot && shape === this.shape) {
      this.plot.setData(data);
      return;
    }
    this.shape = shape;
    this.plot?.destroy();
    this.plot = new uPlot(this.options(), data, this.box);
  }

  // A logarithmic axis, also where values differ so much that any other would hide them.
  get usesLog() {
    const values = this.curves.flatMap((curve) => curve.values).filter((value) => value !== null);
    const positive = values.filter((value) => value > 0);
    if (!positive.length) return false;
    if (this.view.log || this.isLog) return true;
    return positive.length === values.length && most(positive) > WIDE * least(positive);
  }

  data() {
    const weight = this.view.smooth;
    const log = this.usesLog;
    const tables = this.curves.map((curve) => {
      const values = log ? curve.values.map((value) => (value > 0 ? value : null)) : curve.values;
      return weight ? [curve.steps, values, smoothed(values, weight)] : [curve.steps, values];
    });
    if (!tables.length) return [[]];
    const joined = tables.length > 1 ? uPlot.join(tables, tables.map((table) => table.map(() => 1))) : tables[0];
    this.steps = joined[0];
    return joined;
  }

  options() {
    const ink = colour("muted");
    const grid = { stroke: colour("grid"), width: 1 };
    const font = `12px ${getComputedStyle(document.body).fontFamily}`;
    const axis = { stroke: ink, grid, ticks: { show: false }, font };
    const log = this.usesLog;
    const series = [{}];
    for (const curve of this.curves) {
      const stroke = colour(`c${this.colourOf(curve)}`);
      const common = { show: !this.off.has(curve.key), spanGaps: true, dash: this.dashOf(curve), points: { show: curve.steps.length < 2 && !curve.met?.length } };
      // Values that are not finite leave a gap; steps that another curve has do not.
      common.gaps = (plot, place, first, last, gaps) => this.gaps(plot, curve, first, last, gaps);
      if (this.view.smooth) {
        series.push({ ...common, stroke: stroke.replace("rgb(", "rgba(").replace(")", ", 0.22)"), width: 1 });
        series.push({ ...common, stroke, width: 1.75 });
      } else {
        series.push({ ...common, stroke, width: 1.6 });
      }
    }
    return {
      width: this.box.clientWidth,
      height: this.box.clientHeight,
      padding: [8, 10, 0, 0],
      legend: { show: false },
      cursor: {
        sync: { key: this.view.sync, setSeries: false },
        drag: { x: true, y: false, setScale: false, dist: 6 },
        points: { size: 7 },
        y: false,
        bind: { dblclick: () => () => this.view.zoom() },
      },
      scales: {
        x: { time: false, range: () => this.view.range ?? this.view.full },
        y: { distr: log ? 3 : 1, range: (plot, low, high) => this.valueRange(low, high, log) },
      },
      axes: [
        { ...axis, size: 24, gap: 4, space: 70, incrs: this.view.increments, values: (plot, ticks) => ticks.map((value) => this.view.tick(value)) },
        {
          ...axis,
          size: AXIS_WIDTH,
          gap: 6,
          values: (plot, ticks) => ticks.map(this.format.tick),
          ...(log ? { splits: (plot, index, low, high) => logTicks(low, high), filter: (plot, ticks) => ticks } : {}),
        },
      ],
      series,
      hooks: {
        drawClear: [(plot) => this.shade(plot)],
        draw: [(plot) => this.mark(plot)],
        setSelect: [(plot) => this.select(plot)],
        setCursor: [(plot) => this.read(plot)],
      },
    };
  }

  colourOf(curve) {
    return (this.severalRuns ? curve.run : curve.index) % COLOURS;
  }

  dashOf(curve) {
    return DASHES[(this.severalRuns ? curve.index : Math.floor(curve.index / COLOURS)) % DASHES.length];
  }

  gaps(plot, curve, first, last, gaps) {
    gaps.length = 0;
    const marks = curve.marks;
    for (let at = 0; at < marks.length; at += 1) {
      const [place] = marks[at];
      const before = curve.steps.findLast((other, n) => other < place && curve.values[n] !== null);
      const after = curve.steps.find((other, n) => other > place && curve.values[n] !== null);
      if (before === undefined || after === undefined) continue;
      gaps.push([plot.valToPos(before, "x", true), plot.valToPos(after, "x", true)]);
    }
    return gaps;
  }

  get limits() {
    return [...new Set(this.curves.map((curve) => curve.limit).filter((limit) => limit !== null && limit !== undefined))];
  }

  valueRange(low, high, log) {
    let [least, most] = [low ?? 0, high ?? 1];
    for (const limit of this.limits) {
      if (log && limit <= 0) continue;
      least = Math.min(least, limit);
      most = Math.max(most, limit);
    }
    if (log) {
      if (least <= 0) least = most > 0 ? most / 10 : 0.1;
      return [least / 1.3, most * 1.3];
    }
    const room = (most - least) * 0.06 || Math.abs(most) * 0.1 || 1;
    return [least >= 0 && least - room < 0 ? 0 : least - room, most + room];
  }

  // The limit, and the side of it that is bad.
  shade(plot) {
    const { ctx, bbox } = plot;
    const worse = this.curves[0]?.worse;
    if (this.limits.length !== 1) return;
    const y = Math.min(Math.max(plot.valToPos(this.limits[0], "y", true), bbox.top), bbox.top + bbox.height);
    const [top, height] = worse === "above" ? [bbox.top, y - bbox.top] : [y, bbox.top + bbox.height - y];
    ctx.save();
    ctx.fillStyle = colour("IssuesFound-soft");
    if (height <= SHADED * bbox.height) ctx.fillRect(bbox.left, top, bbox.width, height);
    ctx.strokeStyle = colour("limit");
    ctx.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
    ctx.lineWidth = 1.25 * devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    ctx.restore();
  }

  // Findings, values that are not finite, and steps at which a condition was met.
  mark(plot) {
    const { ctx, bbox } = plot;
    const ratio = devicePixelRatio;
    const bottom = bbox.top + bbox.height;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left - 4 * ratio, bbox.top - 8 * ratio, bbox.width + 8 * ratio, bbox.height + 12 * ratio);
    ctx.clip();
    const flags = this.flags();
    const many = Math.max(1, Math.ceil(flags.length / MARKS_DRAWN));
    flags.forEach(({ step: place, kind }, at) => {
      if (at % many && place !== this.view.highlight) return;
      const x = plot.valToPos(place, "x", true);
      ctx.strokeStyle = ctx.fillStyle = colour(kind);
      ctx.globalAlpha = 0.45;
      ctx.lineWidth = ratio;
      ctx.setLineDash([2 * ratio, 3 * ratio]);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bottom);
      ctx.stroke();
      ctx.globalAlpha = 1;
      ctx.beginPath();
      ctx.moveTo(x - 4 * ratio, bbox.top - 6 * ratio);
      ctx.lineTo(x + 4 * ratio, bbox.top - 6 * ratio);
      ctx.lineTo(x, bbox.top + 1 * ratio);
      ctx.fill();
    });
    ctx.setLineDash([]);
    if (this.view.highlight !== null) {
      const x = plot.valToPos(this.view.highlight, "x", true);
      if (this.view.highlightEnd !== null) {
        ctx.globalAlpha = 0.14;
        ctx.fillStyle = colour("IssuesFound");
        ctx.fillRect(x, bbox.top, plot.valToPos(this.view.highlightEnd, "x", true) - x, bbox.height);
        ctx.globalAlpha = 1;
      }
      ctx.strokeStyle = colour("ink");
      ctx.lineWidth = 1.5 * ratio;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bottom);
      ctx.stroke();
    }
    for (const curve of this.curves) {
      if (this.off.has(curve.key)) continue;
      ctx.fillStyle = colour("met");
      const met = new Set(curve.met);
      if (met.size) {
        curve.steps.forEach((place, at) => {
          if (!met.has(place)) return;
          const value = curve.values[at];
          const y = value === null || (this.usesLog && value <= 0) ? bbox.top + 4 * ratio : plot.valToPos(value, "y", true);
          ctx.beginPath();
          ctx.arc(plot.valToPos(place, "x", true), y, 3 * ratio, 0, 7);
          ctx.fill();
        });
      }
      ctx.fillStyle = colour("muted");
      for (const [place] of curve.marks) {
        ctx.fillRect(plot.valToPos(place, "x", true) - 1.5 * ratio, bbox.top, 3 * ratio, 6 * ratio);
      }
    }
    ctx.restore();
  }

  // One flag for each step with findings; a chart of what a rule measured has its own dots.
  flags() {
    if (this.curves.some((curve) => curve.rule)) return [];
    const byStep = new Map();
    for (const finding of this.view.findings) {
      if (!byStep.has(finding.step) || finding.kind === "IssuesFound") byStep.set(finding.step, finding);
    }
    return [...byStep.values()];
  }

  select(plot) {
    const { left, width } = plot.select;
    if (width < 4) return;
    this.view.zoom(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  }

  rescale() {
    if (!this.plot) return;
    if (!this.visible) {
      this.dirty = true;
      return;
    }
    const [min, max] = this.view.range ?? this.view.full;
    this.plot.setScale("x", { min, max });
  }

  resize() {
    if (this.plot && this.box.clientWidth) {
      this.plot.setSize({ width: this.box.clientWidth, height: this.box.clientHeight });
    } else {
      this.draw();
    }
  }

  // Say the values at the cursor, and show them in the table.
  read(plot) {
    const at = plot.cursor.idx;
    const isOn = at !== null && at !== undefined && plot.cursor.left >= 0;
    const place = isOn ? this.steps[at] : null;
    const own = this.box.matches(":hover, :focus");
    this.values.forEach((cell, row) => {
      const curve = this.curves[row];
      cell.textContent = place === null ? this.lastOf(curve) : this.valueAt(curve, place);
    });
    this.head.textContent = place === null ? "last" : this.view.place(place);
    const near = isOn && own ? this.findingsNear(plot, place) : "";
    const limit = this.limits.length === 1 ? ` Limit ${this.format.number(this.limits[0])}.` : "";
    const where = isOn ? this.view.place(place) : "";
    const text = isOn && own ? `${where[0].toUpperCase()}${where.slice(1)}${near ? `: ${near}` : "."}${limit}` : "";
    this.said.textContent = text;
    this.said.title = text;
    this.note.hidden = text !== "";
  }

  findingsNear(plot, place) {
    const reach = Math.abs(plot.posToVal(5, "x") - plot.posToVal(0, "x"));
    const near = this.view.findings.filter((finding) => finding.step - reach <= place && place <= (finding.end ?? finding.step) + reach);
    return [...new Set(near.map((finding) => finding.text))].slice(0, 3).join("; ");
  }

  valueAt(curve, place) {
    const mark = curve.marks.find(([other]) => other === place);
    if (mark) return mark[1];
    const at = curve.steps.indexOf(place);
    if (at >= 0) return this.format.number(curve.values[at]);
    const before = curve.steps.findLastIndex((other) => other < place);
    return before >= 0 && before < curve.steps.length - 1 ? `(${this.format.number(curve.values[before])})` : "–";
  }

  lastOf(curve) {
    const last = curve.steps.at(-1);
    return last === undefined ? "–" : this.valueAt(curve, last);
  }

  legend() {
    const focused = this.table.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    const head = document.createElement("thead");
    const row = head.insertRow();
    const names = ["Curve", "last", "lowest", "highest"].map((text) => {
      const cell = row.appendChild(document.createElement("th"));
      cell.scope = "col";
      cell.textContent = text;
      return cell;
    });
    names[0].className = "";
    this.head = names[1];
    const body = document.createElement("tbody");
    this.values = this.curves.map((curve) => this.legendRow(body, curve));
    this.table.replaceChildren(head, body);
    if (focused) this.table.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  }

  legendRow(body, curve) {
    const row = body.insertRow();
    row.classList.toggle("off", this.off.has(curve.key));
    const name = row.appendChild(document.createElement("th"));
    name.scope = "row";
    const button = name.appendChild(document.createElement("button"));
    button.type = "button";
    button.dataset.key = curve.key;
    button.title = curve.label;
    button.setAttribute("aria-pressed", String(!this.off.has(curve.key)));
    const swatch = button.appendChild(document.createElement("span"));
    swatch.className = `swatch c${this.colourOf(curve)}`;
    button.append(curve.label);
    button.addEventListener("click", () => this.toggle(curve.key));
    const finite = curve.values.filter((value) => value !== null);
    const cells = [this.lastOf(curve), ...[least, most].map((extreme) => this.format.number(finite.length ? extreme(finite) : null))];
    const value = row.insertCell();
    value.textContent = cells[0];
    row.insertCell().textContent = cells[1];
    row.insertCell().textContent = cells[2];
    return value;
  }

  toggle(key) {
    if (this.off.has(key)) this.off.delete(key);
    else this.off.add(key);
    this.legend();
    this.draw({ anew: true });
  }

  describe() {
    const steps = this.curves.flatMap((curve) => [curve.steps[0], curve.steps.at(-1)]).filter((place) => place !== undefined);
    const count = this.curves.length === 1 ? "1 curve" : `${this.curves.length} curves`;
    const span = steps.length ? `, ${this.view.span(least(steps), most(steps))}` : "";
    this.box.setAttribute("aria-label", `${this.heading}: ${count}${span}. Arrow keys read values; the table has the last, lowest and highest.`);
  }

  key(event) {
    if (!this.plot || event.ctrlKey || event.metaKey || event.altKey) return;
    const last = this.steps.length - 1;
    const now = this.plot.cursor.left >= 0 ? (this.plot.cursor.idx ?? 0) : -1;
    const stride = event.shiftKey ? 10 : 1;
    const places = { ArrowLeft: now - stride, ArrowRight: now + stride, Home: 0, End: last };
    if (event.key in places) {
      this.moveTo(Math.min(Math.max(places[event.key], 0), last));
    } else if (event.key === "+" || event.key === "=" || event.key === "-") {
      this.zoomAround(now >= 0 ? this.steps[now] : null, event.key === "-" ? 1 / ZOOM : ZOOM);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  moveTo(at) {
    const left = this.plot.valToPos(this.steps[at], "x");
    const column = this.plot.data.slice(1).find((values) => values[at] !== null && values[at] !== undefined);
    const top = column ? this.plot.valToPos(column[at], "y") : 0;
    this.plot.setCursor({ left, top });
  }

  zoomAround(place, factor) {
    const [low, high] = this.view.range ?? this.view.full;
    const middle = place ?? (low + high) / 2;
    const [first, end] = [middle - (middle - low) * factor, middle + (high - middle) * factor];
    if (first <= this.view.full[0] && end >= this.view.full[1]) this.view.zoom();
    else this.view.zoom(first, end);
  }

  remove() {
    this.plot?.destroy();
    this.resizing.disconnect();
    this.looking.disconnect();
    this.node.remove();
  }
}

// Math.min and Math.max take no long arrays.
export const least = (values) => values.reduce((one, other) => (other < one ? other : one));
export const most = (values) => values.reduce((one, other) => (other > one ? other : one));

// The curves of runs: fetched as they grow, in bounded arrays.
import { least } from "./charts.js";

const POINTS = 800;
const KEPT = 4000; // points of a curve; beyond, it is fetched again with fewer
const AGAIN_MS = 400; // while the service is still reading
const RETRY_MS = 5000;

export const MEASURED = "measured";

const keyOf = (item) => `${item.kind} ${item.rule ?? ""} ${item.quantity ?? ""} ${item.name}`;

// One run: its curves by key, over steps, or those of its `profile`, over seconds since `origin`.
// `changed` is called after each change.
export class Run {
  constructor({ id, name, index, isProfile = false }, changed) {
    Object.assign(this, { id, name, index, isProfile, changed });
    this.origin = null;
    this.curves = new Map();
    this.lastStep = null;
    this.complete = false;
    this.problem = "";
    this.truncated = 0;
    this.busy = false;
    this.again = false;
  }

  // Fetch what is new, or everything.
  async load({ whole = false } = {}) {
    if (this.busy) {
      this.again = this.again || (whole ? "whole" : "new");
      return;
    }
    this.busy = true;
    // Files of a profile are not read in the order of their curves: until all are, nothing is cut.
    const after = whole || (this.isProfile && !this.complete) ? null : this.lastStep;
    try {
      const query = after === null ? `points=${POINTS}` : `points=${POINTS}&after=${after}`;
      const response = await fetch(`/api/v1/trials/${this.id}/${this.isProfile ? "profile" : "series"}?${query}`);
      const page = await response.json();
      if (response.ok) this.take(page, after);
      else this.problem = page.error;
      this.changed();
      if (response.ok && !page.complete) setTimeout(() => this.load(), AGAIN_MS);
    } catch {
      this.problem = "The service cannot be reached. The curves go on when it answers.";
      this.changed();
      if (!document.hidden) setTimeout(() => this.load(), RETRY_MS);
    } finally {
      this.busy = false;
    }
    if (this.again) {
      const next = this.again;
      this.again = false;
      await this.load({ whole: next === "whole" });
    }
  }

  take(page, after) {
    this.problem = page.problem;
    this.complete = page.complete;
    this.truncated = page.truncated;
    if (after === null) this.curves.clear();
    if (this.isProfile && page.series.length) {
      if (after === null) this.origin = least(page.series.map((item) => item.steps[0]));
      if (after !== null && page.series.some((item) => !this.curves.has(keyOf(item)))) this.again = "whole";
    }
    for (const item of page.series) this.add(this.isProfile ? this.timed(item) : item);
    if (page.last_step >= 0) this.lastStep = page.last_step;
    if ([...this.curves.values()].some((curve) => curve.steps.length > KEPT)) {
      this.again = "whole";
    }
  }

  // Return a curve over seconds instead of times.
  timed(item) {
    const seconds = (time) => (time - this.origin) / 1000;
    return { ...item, steps: item.steps.map(seconds), marks: item.marks.map(([time, text]) => [seconds(time), text]) };
  }

  add(item) {
    const key = keyOf(item);
    const known = this.curves.get(key);
    if (!known) {
      this.curves.set(key, { ...item, run: this });
      return;
    }
    const from = item.steps.findIndex((step) => step > known.steps.at(-1));
    if (from < 0) return;
    known.steps.push(...item.steps.slice(from));
    known.values.push(...item.values.slice(from));
    known.marks.push(...item.marks);
  }
}

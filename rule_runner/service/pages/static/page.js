// What all pages share: theme, keys, relative times, messages.
import "./live.js";

const THEMES = ["system", "light", "dark"];
const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const TICK_MS = 15000;
const TOAST_MS = 6000;
const PREFIX_MS = 1200;

// -- theme ----------------------------------------------------------------------------------

function currentTheme() {
  return document.documentElement.dataset.theme ?? "system";
}

function setTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem("theme", theme);
  } catch {
    // It holds for this page only.
  }
  labelTheme();
  dispatchEvent(new Event("themechange"));
}

function labelTheme() {
  const theme = currentTheme();
  const sign = { system: "◐", light: "☀", dark: "☾" }[theme];
  themeButton.textContent = sign;
  themeButton.title = `Theme: ${theme}`;
  themeButton.setAttribute("aria-label", `Theme: ${theme}. Change it.`);
}

const themeButton = document.getElementById("theme-button");
if (themeButton) {
  themeButton.hidden = false;
  themeButton.addEventListener("click", () => {
    setTheme(THEMES[(THEMES.indexOf(currentTheme()) + 1) % THEMES.length]);
  });
  labelTheme();
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  dispatchEvent(new Event("themechange"));
});

// -- keys -----------------------------------------------------------------------------------

const keys = new Map();
const dialog = document.getElementById("keys");
let prefix = "";
let prefixTimer = 0;

// Call `action(event)` when a key is pressed outside of fields and dialogs.
export function onKey(key, action) {
  keys.set(key, action);
}

function isTyping(target) {
  return target.matches?.("input:not([type=checkbox]), select, textarea, [contenteditable]");
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (isTyping(event.target)) return;
  const action = keys.get(prefix + event.key);
  prefix = event.key === "g" && !prefix ? "g" : "";
  clearTimeout(prefixTimer);
  if (prefix) prefixTimer = setTimeout(() => (prefix = ""), PREFIX_MS);
  if (action && action(event) !== false) event.preventDefault();
});

if (dialog) {
  const button = document.getElementById("keys-button");
  button.hidden = false;
  button.addEventListener("click", () => dialog.showModal());
  onKey("?", () => dialog.showModal());
}
onKey("gt", () => location.assign("/trials"));
onKey("gr", () => location.assign("/rules"));

// -- times ----------------------------------------------------------------------------------

function ago(seconds) {
  if (seconds < MINUTE) return "just now";
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)} min ago`;
  if (seconds < DAY) return `${Math.floor(seconds / HOUR)} h ago`;
  return `${Math.floor(seconds / DAY)} d ago`;
}

// Write the times of a part of the page as what has passed since, with the time as title.
export function showTimes(root = document) {
  const now = Date.now() / 1000;
  for (const time of root.querySelectorAll("time[data-at]")) {
    const at = Number(time.dataset.at);
    const text = ago(Math.max(now - at, 0));
    if (time.textContent !== text) time.textContent = text;
    if (!time.title) time.title = new Date(at * 1000).toLocaleString();
  }
}

let ticker = 0;
function tick() {
  clearInterval(ticker);
  if (document.hidden) return;
  showTimes();
  ticker = setInterval(showTimes, TICK_MS);
}
document.addEventListener("visibilitychange", tick);
tick();

// -- messages and requests ------------------------------------------------------------------

let toastTimer = 0;

// Say a sentence at the edge of the page for a few seconds.
export function toast(text) {
  let node = document.querySelector(".toast");
  if (!node) {
    node = document.createElement("div");
    node.className = "toast";
    node.setAttribute("role", "status");
    document.body.append(node);
  }
  node.textContent = text;
  node.hidden = false;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => (node.hidden = true), TOAST_MS);
}

// Return the sentence of an error response.
export async function sentenceOf(response) {
  try {
    return (await response.json()).error;
  } catch {
    return `The service answered ${response.status}. Reload the page, or look at its log.`;
  }
}

// Post JSON; throws an error whose message is a sentence for the user.
export async function post(address, body) {
  let response;
  try {
    response = await fetch(address, {
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        "X-CSRF-Token": document.querySelector("meta[name=csrf-token]").content,
      },
      body: JSON.stringify(body),
    });
  } catch {
    throw new Error("The service cannot be reached. Try again when it runs.");
  }
  if (!response.ok) throw new Error(await sentenceOf(response));
  return response.json().catch(() => ({}));
}

export const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");

// Events of the service, from the stream that all tabs share; see stream_worker.js.

const ADDRESS = "/api/v1/events";
const WORDS = { live: "Live", lost: "Connection lost, retrying", off: "" };
const listeners = new Set();
let hasEmitted = false;

// Call `listener(type, data)` for each event, and with "reload" when events may be missing.
export function listen(listener) {
  listeners.add(listener);
  if (hasEmitted) queueMicrotask(() => listener("reload", {}));
}

function emit(type, data) {
  hasEmitted = true;
  for (const listener of listeners) listener(type, data);
}

function show(state) {
  const mark = document.getElementById("live");
  if (!mark || mark.dataset.state === state) return;
  mark.dataset.state = state;
  mark.querySelector(".word").textContent = WORDS[state];
  mark.title = WORDS[state];
}

function receive({ data }) {
  if (data.state) show(data.state);
  if (data.type) emit(data.type, data.data);
}

// A port to the worker; without shared workers, to the same script in this page.
async function connect() {
  let port;
  if (typeof SharedWorker === "undefined") {
    const channel = new MessageChannel();
    await import("./stream_worker.js");
    globalThis.onconnect({ ports: [channel.port1] });
    port = channel.port2;
  } else {
    port = new SharedWorker(new URL("stream_worker.js", import.meta.url), "rule-runner").port;
  }
  port.onmessage = receive;
  return port;
}

if (document.getElementById("live")) {
  const port = await connect();
  const say = () => port.postMessage({ kind: "hello", address: ADDRESS, visible: !document.hidden });
  document.addEventListener("visibilitychange", say);
  addEventListener("pagehide", () => port.postMessage({ kind: "bye", visible: false }));
  addEventListener("pageshow", (event) => {
    if (event.persisted) say();
  });
  say();
}

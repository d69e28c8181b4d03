// Events of the service, from the stream that all tabs share; see stream_worker.js.

const ADDRESS = "/api/v1/events";
const WORDS = { live: "Live", lost: "Connection lost, retrying", off: "" };
const RETRY_MS = 30000;
const TYPES = ["trial", "finding", "series", "reload"];
const listeners = new Set();
let wasHidden = document.hidden;

// Call `listener(type, data)` for each event, and with "reload" when events may be missing.
export function listen(listener) {
  listeners.add(listener);
}

function emit(type, data) {
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

// A port to the worker; without shared workers, an object of the same use with its own stream.
function connect() {
  if (typeof SharedWorker === "undefined") return ownStream();
  const worker = new SharedWorker(new URL("stream_worker.js", import.meta.url), "rule-runner");
  worker.port.onmessage = receive;
  worker.port.start();
  return worker.port;
}

function ownStream() {
  let source = null;
  return {
    postMessage({ visible }) {
      if (!visible) {
        source?.close();
        source = null;
      } else if (!source) {
        source = new EventSource(ADDRESS);
        source.onopen = () => {
          show("live");
          emit("reload", {});
        };
        source.onerror = ({ target }) => {
          show("lost");
          if (target.readyState !== EventSource.CLOSED) return; // it tries again by itself
          source = null;
          emit("reload", {}); // pages learn why when they look at the service
          setTimeout(() => this.postMessage({ visible: !document.hidden }), RETRY_MS);
        };
        for (const type of TYPES) {
          source.addEventListener(type, (event) => emit(type, JSON.parse(event.data || "{}")));
        }
      }
    },
  };
}

if (document.getElementById("live")) {
  const port = connect();
  const say = () => {
    port.postMessage({ kind: "hello", address: ADDRESS, visible: !document.hidden });
    if (wasHidden && !document.hidden) emit("reload", {});
    wasHidden = document.hidden;
  };
  document.addEventListener("visibilitychange", say);
  addEventListener("pagehide", () => port.postMessage({ kind: "bye", visible: false }));
  addEventListener("pageshow", (event) => {
    if (event.persisted) {
      wasHidden = true;
      say();
    }
  });
  say();
}

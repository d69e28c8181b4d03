// One event stream for all tabs of a browser, or for one page without shared workers. Pages say
// whether they are visible; the stream is closed while none is.
"use strict";

const TYPES = ["trial", "finding", "series", "reload"];
const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 30000;
const SILENCE_MS = 45000; // the service sends a ping every 15 s
const ports = new Map(); // port -> whether its page is visible
let address = "";
let source = null;
let timer = 0;
let silence = 0;
let pause = FIRST_PAUSE_MS;
let state = "off";

function tell(message) {
  for (const [port, visible] of ports) if (visible) port.postMessage(message);
}

function become(next) {
  state = next;
  tell({ state });
}

function open() {
  if (source || timer) return;
  source = new EventSource(address);
  source.onopen = () => {
    pause = FIRST_PAUSE_MS;
    become("live");
    hear();
  };
  source.onerror = lose;
  source.addEventListener("ping", hear);
  for (const type of TYPES) {
    source.addEventListener(type, (event) => {
      hear();
      tell({ type, data: JSON.parse(event.data) });
    });
  }
  hear();
}

// A connection may break without an error.
function hear() {
  clearTimeout(silence);
  silence = setTimeout(lose, SILENCE_MS);
}

function lose() {
  const refused = source.readyState === EventSource.CLOSED;
  close();
  become("lost");
  // Pages learn why, such as a session that has ended, when they look at the service.
  if (refused) tell({ type: "reload", data: {} });
  timer = setTimeout(() => {
    timer = 0;
    update();
  }, pause * (0.75 + Math.random() / 2));
  pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
}

function close() {
  source?.close();
  source = null;
  clearTimeout(silence);
  clearTimeout(timer);
  timer = 0;
}

function update() {
  if ([...ports.values()].some(Boolean)) {
    open();
  } else {
    close();
    state = "off";
  }
}

globalThis.onconnect = (connection) => {
  const port = connection.ports[0];
  port.onmessage = ({ data }) => {
    if (data.kind === "bye") {
      ports.delete(port);
    } else {
      address = data.address;
      ports.set(port, data.visible);
      // It has missed what was told since it was rendered, or hidden.
      if (data.visible) port.postMessage(state === "live" ? { state, type: "reload", data: {} } : { state });
    }
    update();
  };
};

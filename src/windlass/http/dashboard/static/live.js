// The page goes on by itself: parts of it come by a stream, while somebody looks.
import { showAnchored } from "./anchored.js";
import { morph } from "./morph.js";
import { showTimes } from "./times.js";

const pulse = document.getElementById("pulse");
const away = document.getElementById("away");
let stream = null;

export function startLive() {
  if (!document.body.dataset.stream) return;
  document.addEventListener("visibilitychange", () => (document.hidden ? pause() : resume()));
  addEventListener("pagehide", pause);
  addEventListener("pageshow", ({ persisted }) => {
    // a browser that kept the page shows it as it was when it was left, perhaps to somebody who has logged out
    if (persisted) refresh();
  });
  if (!document.hidden) open();
}

// Looks at the page anew, as a reload would; what does not answer now is told of by the stream.
export async function refresh() {
  const reply = await look();
  if (!reply?.ok) return;
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  for (const region of page.querySelectorAll("[data-region]")) show(region.dataset.region, region.innerHTML);
  // the stream tells what has changed since it last told something, which may be newer or older than this page: it
  // begins anew, and tells all
  resume();
}

function open() {
  stream = new EventSource(document.body.dataset.stream);
  stream.onopen = goesOn;
  stream.onerror = () => {
    tell("away", "connecting", "The connection is lost: it is tried again");
    // a stream that the server refuses does not come back by itself
    if (stream?.readyState === EventSource.CLOSED) setTimeout(again, 3000);
  };
  stream.onmessage = ({ data }) => take(JSON.parse(data));
}

async function again() {
  if (await look()) resume();
}

// Returns the page as it is now, if it answers. Where the session is over, or the page is not for this reader any more,
// the page itself says so.
async function look() {
  const reply = await fetch(location.href, { headers: { Accept: "text/html" } }).catch(() => null);
  if (!reply?.redirected && ![401, 403, 404].includes(reply?.status)) return reply ?? {};
  location.reload();
  return null;
}

function pause() {
  // a browser has few connections for one host: a page that nobody sees needs none
  stream?.close();
  stream = null;
  tell("quiet", "paused", "The page rests while nobody looks at it");
}

function resume() {
  if (document.hidden) return;
  stream?.close();
  open();
}

function take({ regions = {}, away: why = null }) {
  if (why === null) goesOn();
  else tell("away", "waiting", "The store does not answer: it is asked again");
  away.hidden = why === null;
  away.textContent = why === null ? "" : `What you see is of ${new Date().toLocaleTimeString()} or before: ${why}`;
  for (const [name, html] of Object.entries(regions)) show(name, html);
}

function show(name, html) {
  const region = document.querySelector(`[data-region="${CSS.escape(name)}"]`);
  if (!region) return;
  const wanted = region.cloneNode(false);
  const parsed = new DOMParser().parseFromString(`<template>${html}</template>`, "text/html");
  wanted.append(document.importNode(parsed.querySelector("template").content, true));
  showTimes(wanted);
  showAnchored(region, wanted);
  morph(region, wanted);
  region.dispatchEvent(new CustomEvent("shown", { bubbles: true }));
}

function goesOn() {
  tell("live", "live", "The page updates by itself");
}

function tell(state, text, title) {
  pulse.dataset.state = state;
  pulse.value = text;
  pulse.title = title;
}

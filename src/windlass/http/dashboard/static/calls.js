// Buttons that change something call the API; it is asked for first where it cannot be taken back.
import { refresh } from "./live.js";
import { api } from "./root.js";
import { toast } from "./toasts.js";

const UNDO = 5000;
const PART = 1000;
const DONE = ["done", "removed", "requested"];
const pressed = new WeakSet();

export function startCalls() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-call]");
    if (button) press(button);
  });
}

async function press(button) {
  // pressed twice it does its work once, also while it is still being asked for
  if (pressed.has(button)) return;
  pressed.add(button);
  const label = button.textContent.trim();
  try {
    // as it was when it was pressed: the page goes on meanwhile
    const meant = button.dataset.asks === undefined ? { ...button.dataset } : await whole(button);
    if (!meant || (meant.confirm !== undefined && !(await agreed(meant.confirm, label, button.classList.contains("danger"))))) return;
    // not before: whoever leaves the question has the focus where it was
    button.disabled = true;
    button.ariaBusy = "true";
    if (meant.undo !== undefined && !(await staying(leftAlone(`${label} in a moment`)))) return;
    await change(meant.call, JSON.parse(meant.body), meant.done, meant.bulk === undefined ? null : label);
  } finally {
    pressed.delete(button);
    button.disabled = false;
    button.ariaBusy = null;
    if (document.activeElement === document.body) button.focus();
  }
}

// Whoever leaves the page before something is done is asked whether to: it would not be done.
async function staying(done) {
  const hold = (event) => event.preventDefault();
  addEventListener("beforeunload", hold);
  return done.finally(() => removeEventListener("beforeunload", hold));
}

// What a button means that stands for more ids than a page has room for: another page has it with all of them.
async function whole(button) {
  const reply = await fetch(button.dataset.asks, { headers: { Accept: "text/html" } }).catch(() => null);
  if (reply?.redirected) {
    // the session is over: the page leads to the login
    location.reload();
    return null;
  }
  const page = new DOMParser().parseFromString(reply?.ok ? await reply.text() : "", "text/html");
  const found = page.querySelector(`[data-bulk="${CSS.escape(button.dataset.bulk)}"][data-body]`);
  if (!found) toast(reply?.ok ? "Nothing was changed: none of them is here any more" : "It could not be asked for: try again", "bad");
  return found && { ...found.dataset };
}

// Calls the API, tells how it ended, and shows what has become of it; what takes long is told of while it is under way.
export async function change(path, body, done, working = null) {
  const note = working === null ? null : toast(`${working} is under way`, "works");
  try {
    const told = await staying(sendAll(path, body));
    toast(said(done, told), "good", null, told.job_id);
    await refresh();
  } catch (error) {
    toast(sentence(error), "bad");
    // the page leads to the login, or says where it is
    if (error.status === 401) location.reload();
  } finally {
    note?.remove();
  }
}

// What the API says begins as what a command says, behind a colon; for some reasons with somebody's name.
function sentence({ message, status }) {
  return [403, 421].includes(status) ? message : message.charAt(0).toUpperCase() + message.slice(1);
}

// Many ids are sent some at a time: each part is a step of its own.
async function sendAll(path, body) {
  const ids = body.ids ?? [];
  if (ids.length <= PART) return send("POST", path, body);
  const outcomes = [];
  for (let at = 0; at < ids.length; at += PART) {
    const told = await send("POST", path, { ...body, ids: ids.slice(at, at + PART) }).catch((error) => {
      error.message += ` (the first ${at.toLocaleString()} of ${ids.length.toLocaleString()} were done)`;
      throw error;
    });
    outcomes.push(...told.outcomes);
  }
  return { outcomes };
}

export async function send(method, path, body) {
  const reply = await fetch(api + path, {
    method,
    headers: { "Content-Type": "application/json", Accept: "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  }).catch(() => {
    throw new Error("The dashboard does not answer: is it still running?");
  });
  const told = await reply.json().catch(() => ({}));
  if (!reply.ok) throw Object.assign(new Error(told.message ?? `It was refused (${reply.status}).`), { status: reply.status });
  return told;
}

function agreed(text, label, isDanger) {
  const dialog = document.getElementById("confirm");
  // somebody thinks about another question: it must not become this one under their hand
  if (dialog.open) return Promise.resolve(false);
  document.getElementById("confirm-text").textContent = text;
  const yes = document.getElementById("confirm-yes");
  yes.textContent = label;
  yes.classList.toggle("danger", isDanger);
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}

// Resolves to false when the reader takes it back in time.
function leftAlone(text) {
  return new Promise((resolve) => {
    const shown = toast(text, "waits", { label: "Undo", press: () => end(false) });
    const timer = setTimeout(() => end(true), UNDO);
    function end(go) {
      clearTimeout(timer);
      shown.remove();
      resolve(go);
    }
  });
}

// What was done, by the numbers that the API tells: `{count}` in the text stands for how many.
function said(done, told) {
  const outcomes = told.outcomes ?? [];
  const refused = outcomes.filter((outcome) => !DONE.includes(outcome));
  const count = told.count ?? outcomes.length - refused.length;
  const why = told.left ? "another live job holds their unique key" : refused[0]?.replaceAll("_", " ");
  if (!count && why) return `Nothing was changed: ${why}`;
  if (told.removed === false || told.count === 0) return "Nothing was changed: it is not here any more";
  const left = told.left ?? refused.length;
  return done.replace("{count}", count.toLocaleString()) + (left ? `; ${left.toLocaleString()} left as they were: ${why}` : "");
}

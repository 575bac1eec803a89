// Short notes at the edge of the page.
import { root } from "./root.js";

const STAYS = 6000;

// With `job` the note leads to that job, and stays longer.
export function toast(text, kind = "good", action = null, job = null) {
  const note = document.createElement("div");
  note.className = `toast ${kind}`;
  note.append(Object.assign(document.createElement("span"), { textContent: text }));
  if (job) note.append(Object.assign(document.createElement("a"), { href: `${root}/jobs/${job}`, textContent: "Show the job" }));
  if (action) {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: action.label });
    button.addEventListener("click", action.press);
    note.append(button);
  } else if (kind !== "works") {
    setTimeout(() => note.remove(), kind === "bad" || job ? 2 * STAYS : STAYS);
  }
  document.getElementById("toasts").append(note);
  if (action) note.querySelector("button").focus();
  return note;
}

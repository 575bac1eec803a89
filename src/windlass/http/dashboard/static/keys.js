// The keyboard: `g` and a letter lead to a page, `j` and `k` through its rows.
import { root } from "./root.js";
import { changeTheme } from "./themes.js";

const pages = { o: "/", j: "/jobs", d: "/dead", s: "/schedules", v: "/servers", a: "/audit" };
let leading = 0;

export function startKeys() {
  document.getElementById("help")?.addEventListener("click", showKeys);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || document.querySelector("dialog[open]")) return;
    if (press(event.key)) event.preventDefault();
  });
}

function typing(target) {
  return target.closest("input, select, textarea, [contenteditable]") !== null;
}

function press(key) {
  if (leading && Date.now() - leading < 1500 && key in pages) {
    location.assign(root + pages[key]);
    return true;
  }
  leading = key === "g" ? Date.now() : 0;
  if (key === "/") return focus(document.querySelector("input[type=search]"));
  if (key === "j" || key === "k") return step(key === "j" ? 1 : -1);
  if (key === "t") return changeTheme() ?? true;
  if (key === "?") return showKeys() ?? true;
  return key === "g";
}

function step(by) {
  const rows = [...document.querySelectorAll("[data-row] a.row")];
  const at = rows.indexOf(document.activeElement);
  return focus(rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + by))]);
}

function focus(element) {
  element?.focus();
  return Boolean(element);
}

function showKeys() {
  document.getElementById("keys").showModal();
}

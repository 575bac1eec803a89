// Before the first paint, so that nothing flashes: the theme that the reader chose, else the system's.
const chosen = localStorage.getItem("windlass-theme");
if (chosen === "dark" || chosen === "light") {
  document.documentElement.dataset.theme = chosen;
}

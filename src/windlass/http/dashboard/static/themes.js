// Light or dark, kept for this browser.
const html = document.documentElement;

export function startThemes() {
  document.getElementById("theme")?.addEventListener("click", changeTheme);
}

export function changeTheme() {
  const wanted = isDark() ? "light" : "dark";
  html.dataset.theme = wanted;
  localStorage.setItem("windlass-theme", wanted);
}

function isDark() {
  const chosen = html.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

// Charts in the zone of the reader: the times below them, and what a step says when one points at it.
const minute = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });

function showZone(within) {
  for (const moment of within.querySelectorAll(".moments [data-at]")) {
    moment.textContent = minute.format(new Date(moment.dataset.at));
  }
}

function reading(step) {
  const chart = step.closest(".chart");
  const place = [...step.parentElement.querySelectorAll(".step")].indexOf(step);
  const at = Date.parse(chart.dataset.since) + place * chart.dataset.step * 1000;
  return `${minute.format(at)} · ${step.textContent}`;
}

function point(event) {
  const step = event.target.closest?.(".chart .step");
  for (const shown of document.querySelectorAll(".chart .reading")) {
    const text = step && shown.closest(".chart").contains(step) ? reading(step) : "";
    if (shown.textContent !== text) shown.textContent = text;
  }
}

showZone(document);
document.addEventListener("shown", (event) => showZone(event.target));
document.addEventListener("pointerover", point);
document.addEventListener("pointerdown", point);

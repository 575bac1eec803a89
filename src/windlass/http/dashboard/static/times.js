// Times in the zone of the reader, and ages that go on by themselves.
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const day = { month: "short", day: "numeric" };
const minute = { hour: "numeric", minute: "2-digit" };
const shorts = [day, { ...day, year: "numeric" }].flatMap((date) =>
  [minute, { ...minute, second: "2-digit" }].map((time) => new Intl.DateTimeFormat(undefined, { ...date, ...time })),
);
const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

export function startTimes() {
  showTimes(document);
  setInterval(() => showTimes(document), 1000);
}

export function showTimes(within) {
  for (const each of within.querySelectorAll("time[data-as]")) {
    const at = new Date(each.dateTime);
    const text = shown(each.dataset.as, at);
    if (each.textContent !== text) each.textContent = text;
    if (!each.title) each.title = `${full.format(at)} (${at.toISOString()})`;
  }
}

function shown(as, at) {
  if (as === "moment") return moment.format(at);
  if (as === "short") return short(at);
  if (as === "clock") return clock.format(at);
  if (as === "length") return length(Date.now() - at);
  return age(at);
}

// A moment without what goes without saying: this year, and no seconds.
function short(at) {
  const year = at.getFullYear() === new Date().getFullYear() ? 0 : 2;
  return shorts[year + (at.getSeconds() ? 1 : 0)].format(at);
}

export function age(at) {
  const seconds = Math.round((at - Date.now()) / 1000);
  if (seconds === 0) return "now";
  return seconds > 0 ? `in ${length(seconds * 1000)}` : `${length(-seconds * 1000)} ago`;
}

function length(milliseconds) {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  for (let i = 0; i < units.length; i += 1) {
    const [unit, size] = units[i];
    const count = Math.floor(seconds / size);
    if (!count) continue;
    const below = units[i + 1];
    const rest = below ? Math.floor((seconds % size) / below[1]) : 0;
    // of one or two hours the minutes count, of seven they do not
    return count < 3 && rest ? `${count} ${unit} ${rest} ${below[0]}` : `${count} ${unit}`;
  }
  return "0 s";
}

// Lists that must not move under the reader: rows that came since are counted, and shown when they are asked for.
export function showAnchored(from, to) {
  for (const list of from.querySelectorAll("[data-anchored]")) {
    const wanted = to.querySelector(`[data-anchored="${CSS.escape(list.dataset.anchored)}"]`);
    if (wanted) anchor(list, wanted, to.querySelector("[data-newer]"));
  }
}

function anchor(list, wanted, notice) {
  const drops = list.dataset.drops !== undefined;
  const here = new Map([...list.children].map((row) => [row.dataset.key, row]));
  const there = new Map([...wanted.children].map((row) => [row.dataset.key, row]));
  const keys = [...there.keys()];
  // what comes behind all that is seen moves nothing
  const end = keys.findLastIndex((key) => here.has(key)) + 1;
  if (!here.size || (!end && drops)) return;
  const newer = (end ? keys.slice(0, end) : keys).filter((key) => !here.has(key)).length;
  // the rows that the reader sees, in their order, as they are now; while newer ones wait to be shown those that are
  // missing keep their place, unless the list says that they drop out
  const last = [...here.keys()].findLastIndex((key) => there.has(key));
  const missing = (row, at) => (newer && !drops ? kept(row, at < last) : null);
  const seen = [...here].map(([key, row], at) => there.get(key) ?? missing(row, at)).filter(Boolean);
  wanted.replaceChildren(...seen, ...(end ? keys.slice(end).map((key) => there.get(key)) : []));
  if (notice && newer) {
    notice.hidden = false;
    notice.textContent = newer >= there.size ? `Show newer jobs` : `Show ${newer} newer`;
  }
}

// A row that newer ones have pushed out is as it was; one that is missing between others belongs there no longer.
function kept(row, isGone) {
  const copy = row.cloneNode(true);
  copy.classList.toggle("gone", isGone);
  return copy;
}

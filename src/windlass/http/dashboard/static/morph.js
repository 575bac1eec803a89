// Makes one tree look like another with as few changes as there are differences: what the reader has opened, marked,
// focused or typed stays as it is.
const own = { DETAILS: ["open"], DIALOG: ["open"], INPUT: ["value", "checked"] };

export function morph(from, to) {
  morphAttributes(from, to);
  if (from.dataset?.kept !== undefined) return;
  const keyed = new Map();
  for (const child of from.children) {
    if (keyOf(child)) keyed.set(keyOf(child), child);
  }
  const wantedKeys = new Set([...to.children].map(keyOf));
  let at = from.firstChild;
  for (const wanted of [...to.childNodes]) {
    const found = match(at, wanted, keyed);
    // a node that is moved loses the focus, so what stands before it goes first
    while (found && at !== found && isLeftOut(at, wantedKeys)) at = removed(at);
    if (!found) {
      from.insertBefore(wanted, at);
    } else {
      if (found === at) at = at.nextSibling;
      else from.insertBefore(found, at);
      update(found, wanted);
    }
  }
  while (at) at = removed(at);
}

function isLeftOut(node, wantedKeys) {
  if (node?.nodeType === Node.TEXT_NODE) return !node.nodeValue.trim();
  return Boolean(node && keyOf(node)) && !wantedKeys.has(keyOf(node));
}

// Removes a node, and returns the one behind it.
function removed(node) {
  const next = node.nextSibling;
  node.remove();
  return next;
}

function keyOf(node) {
  return node.nodeType === Node.ELEMENT_NODE ? node.id || node.dataset.key : undefined;
}

function match(at, wanted, keyed) {
  const key = keyOf(wanted);
  if (key) {
    const found = keyed.get(key);
    // two of the same name are two
    keyed.delete(key);
    return found;
  }
  return at && !keyOf(at) && at.nodeType === wanted.nodeType && at.nodeName === wanted.nodeName ? at : null;
}

function update(from, to) {
  if (from.nodeType !== Node.ELEMENT_NODE) {
    if (from.nodeValue !== to.nodeValue) from.nodeValue = to.nodeValue;
  } else if (from.nodeName !== to.nodeName) {
    from.replaceWith(to);
  } else if (from.nodeName === "TIME" && from.dateTime === to.dateTime) {
    // its text goes on by itself
  } else {
    morph(from, to);
  }
}

function morphAttributes(from, to) {
  // a button whose work is under way stays so until that ends
  const kept = from.ariaBusy === "true" ? ["disabled", "aria-busy"] : own[from.nodeName] ?? [];
  for (const { name, value } of [...to.attributes]) {
    if (!kept.includes(name) && from.getAttribute(name) !== value) from.setAttribute(name, value);
  }
  for (const { name } of [...from.attributes]) {
    if (!kept.includes(name) && !to.hasAttribute(name) && name !== "title") from.removeAttribute(name);
  }
}

// The form of the list: times in the zone of the reader, and a URL without what was left empty.
const form = document.querySelector("form[data-filters]");
const times = [...form.querySelectorAll("input[type=datetime-local]")];

for (const input of times) {
  if (input.dataset.at) input.value = local(new Date(input.dataset.at));
  const zone = form.querySelector(`label[for="${input.id}"] [data-zone]`);
  zone.textContent = "(your time)";
  zone.title = Intl.DateTimeFormat().resolvedOptions().timeZone;
}

form.addEventListener("formdata", ({ formData }) => {
  for (const input of times) {
    if (input.value) formData.set(input.name, new Date(input.value).toISOString());
  }
  for (const [name, value] of [...formData]) {
    if (!value.trim()) formData.delete(name);
  }
});

function local(at) {
  const shifted = new Date(at.getTime() - at.getTimezoneOffset() * 60000);
  return shifted.toISOString().slice(0, at.getSeconds() ? 19 : 16);
}

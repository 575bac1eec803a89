// Begins a session of this browser with a token.
import { api } from "./root.js";

const form = document.getElementById("login");
const problem = document.getElementById("problem");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  problem.hidden = true;
  const reply = await fetch(`${api}/session`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ token: form.elements.token.value.trim() }),
  }).catch(() => null);
  if (reply?.ok) {
    location.assign(form.dataset.next);
    return;
  }
  const told = await reply?.json().catch(() => null);
  problem.textContent = reply?.status === 401 ? "This token is not known." : (told?.message ?? "It does not answer.");
  problem.hidden = false;
  form.elements.token.select();
});

// Ends the session of this browser.
import { api, root } from "./root.js";
import { toast } from "./toasts.js";

export function startLogout() {
  document.getElementById("logout")?.addEventListener("click", async () => {
    const reply = await fetch(`${api}/session`, { method: "DELETE" }).catch(() => null);
    if (reply?.ok) location.assign(`${root}/login`);
    else toast("You are still logged in: the dashboard did not answer. Try again.", "bad");
  });
}

// What runs on every page.
import { startCalls } from "./calls.js";
import { startKeys } from "./keys.js";
import { startLive } from "./live.js";
import { startLogout } from "./logout.js";
import { startThemes } from "./themes.js";
import { startTimes } from "./times.js";

// on a phone the row of pages, or of states, may be longer than the screen; not by `scrollIntoView`, from where the first
// Tab would go on
for (const here of document.querySelectorAll(".top nav [aria-current], .tabs [aria-current]")) {
  const row = here.closest("ul, .tabs");
  row.scrollLeft = here.offsetLeft + here.offsetWidth - row.offsetLeft - row.clientWidth;
}
startTimes();
startThemes();
startKeys();
startCalls();
startLogout();
startLive();

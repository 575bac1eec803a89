// The log goes on at its end for whoever reads its end; who has scrolled up is left alone.
const NEAR = 24;
let follows = true;

toEnd();
document.addEventListener("scroll", ({ target }) => {
  if (target.matches?.("[data-log]")) follows = target.scrollHeight - target.scrollTop - target.clientHeight < NEAR;
}, true);
document.addEventListener("shown", ({ target }) => {
  if (target.dataset.region === "log" && follows) toEnd();
});

function toEnd() {
  const log = document.querySelector("[data-log]");
  if (log) log.scrollTop = log.scrollHeight;
}

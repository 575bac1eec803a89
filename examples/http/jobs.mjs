// A job's whole life by fetch alone: enqueue, claim, renew, ack, and look at how it ended.
//
//   windlass serve sqlite:///jobs.db &
//   node jobs.mjs
//
// WINDLASS_URL says where, WINDLASS_TOKEN who.
const url = process.env.WINDLASS_URL ?? "http://127.0.0.1:8700";
const token = process.env.WINDLASS_TOKEN ?? "";

// One call. It has a name of its own, made before the first try: it may be repeated when the reply was lost, and is done
// once all the same.
async function call(path, body, tries = 5) {
  const name = crypto.randomUUID();
  for (let attempt = 1; ; attempt++) {
    try {
      const reply = await fetch(`${url}/api/v1/${path}`, {
        method: body === undefined ? "GET" : "POST",
        headers: {
          "Content-Type": "application/json",
          Authorization: `Bearer ${token}`,
          "Windlass-Request": name,
        },
        body: body === undefined ? undefined : JSON.stringify(body),
        signal: AbortSignal.timeout(90_000),
      });
      const told = await reply.json();
      if (reply.ok) return told;
      if (reply.status !== 429 && reply.status !== 503) throw new Refused(told);
    } catch (error) {
      if (error instanceof Refused || attempt === tries) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 100 * 2 ** attempt));
  }
}

class Refused extends Error {
  constructor({ error, message }) {
    super(`${error}: ${message}`);
  }
}

const { jobs } = await call("jobs", {
  jobs: [{ queue: "javascript", kind: "greet", payload: { name: "world" } }],
});
console.log("enqueued");

// as soon as there is one, at most 10 seconds from now; it is ours for 30 seconds
const { claims } = await call("claims", { queues: ["javascript"], lease: 30, wait: 10 });
const [{ job, token: proof }] = claims;
console.log(`claimed ${job.id}`, job.id === jobs[0].id ? "" : "(an older one)");

// longer work renews each third of its lease, and stops when it hears of a cancel
const held = { id: job.id, token: proof };
const { renewed } = await call("claims/renew", { claims: [held], lease: 30 });
if (renewed[0] === null) throw new Error("the claim was lost");
console.log("renewed");

const result = `hello ${job.payload.name}`;
const { settled } = await call("claims/settle", { settlements: [{ do: "ack", ...held, result }] });
if (settled[0].outcome !== "done") throw new Error(`not settled: ${settled[0].outcome}`);
console.log("acked");

const { state, result: kept } = await call(`jobs/${job.id}`);
console.log(`the job is ${state}: ${kept}`);

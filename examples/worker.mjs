// A worker in plain Node.js (18 or newer): claims runs of external jobs over REST and does them.
//
//     ROTA_URL=http://127.0.0.1:7682 node examples/worker.mjs
//
// ROTA_TOKEN (role `worker`) is needed where `auth` is on, ROTA_WORKER names it. What each job does is below.

import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";

const jobs = {
  // Each gets its payload and a context; what it returns is the run's result, what it throws the run's error.
  async "label-images"({ image, pages = 1, wrong = false }, ctx) {
    for (let page = 1; page <= pages; page++) {
      await sleep(200, null, { signal: ctx.signal });
      await ctx.progress((100 * page) / pages, `page ${page} of ${pages}`);
      await ctx.log(`looked at ${image}, page ${page}`);
    }
    if (wrong) throw new Error(`${image} is no picture`);
    return { label: "cat" };
  },
};

const url = process.env.ROTA_URL ?? "http://127.0.0.1:7682";
const token = process.env.ROTA_TOKEN;
const worker = `${process.env.ROTA_WORKER ?? hostname()}@${randomBytes(6).toString("hex")}`;
const held = new Map(); // id → fence: what this process knows that it has

class Refused extends Error {
  constructor(status, { code = "unknown", detail = "" } = {}) {
    super(`${status} ${code}: ${detail}`);
    Object.assign(this, { status, code });
  }
}

async function post(path, body, signal) {
  const headers = { "content-type": "application/json", ...(token && { authorization: `Bearer ${token}` }) };
  const answer = await fetch(`${url}/api/v1${path}`, { method: "POST", headers, body: JSON.stringify(body), signal });
  if (answer.status === 204) return null;
  const told = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(answer.status, told);
  return told;
}

// Every act may be said again: after an answer that got lost, or while the server or its database is away.
async function insist(path, body) {
  for (let rest = 200; ; rest = Math.min(2 * rest, 5_000)) {
    try {
      return await post(path, body);
    } catch (error) {
      if (error instanceof Refused && error.status < 500 && error.status !== 429) throw error;
      console.error(`${path}: ${error.message}; again in ${rest} ms`);
      await sleep(rest);
    }
  }
}

async function work(run) {
  const stop = new AbortController();
  const say = (verb, body = {}) => insist(`/worker/runs/${run.id}/${verb}`, { fence: run.fence, ...body });
  let cancelling = false;
  let lost = false;
  let lines = 0;
  const hear = (beat) => {
    if (beat.cancelling) cancelling = true;
    if (cancelling) stop.abort();
  };
  const lose = (error) => {
    lost = error.code === "stale-lease" || error.code === "unknown-run";
    stop.abort();
  };
  const beats = setInterval(() => say("heartbeat").then(hear, lose), 1_000);
  const ctx = {
    signal: stop.signal,
    progress: async (percentage, summary) => hear(await say("progress", { percentage, summary })),
    log: (text) => say("logs", { lines: [text], no: ++lines }),
  };
  try {
    const result = await jobs[run.job](run.payload, ctx);
    console.log(run.id, (await say("complete", { result })).state);
  } catch (error) {
    await end(error);
  } finally {
    clearInterval(beats);
    held.delete(run.id);
  }

  async function end(error) {
    if (error.code === "stale-lease") lost = true;
    if (lost) return console.error(run.id, "is somebody else's now");
    const said = { message: error.message || String(error), type: error.name, traceback: error.stack };
    const { state } = await (cancelling ? say("cancelled") : say("fail", { error: said }));
    console.log(run.id, state);
  }
}

const stopping = new AbortController();
for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => stopping.abort());

console.log(`${worker} asks ${url}`);
const working = new Set();
while (!stopping.signal.aborted) {
  try {
    const known = [...held].map(([id, fence]) => ({ id, fence }));
    const wanted = { worker, jobs: Object.keys(jobs), max: 1, wait: "20s", lease: "10s", held: known };
    const { runs } = await post("/worker/claim", wanted, stopping.signal);
    for (const run of runs) {
      held.set(run.id, run.fence);
      const doing = work(run)
        .catch((error) => console.error(run.id, error.message))
        .finally(() => working.delete(doing));
      working.add(doing);
    }
    if (working.size >= 4) await Promise.race(working);
  } catch (error) {
    if (stopping.signal.aborted) break;
    console.error(`claim: ${error.message}`);
    await sleep(1_000);
  }
}
console.log(`stopping: ${working.size} to finish`);
await Promise.allSettled(working); // it claims nothing more, and ends what it has

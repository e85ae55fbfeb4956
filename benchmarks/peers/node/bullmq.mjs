// BullMQ in a measured process, with a job scheduler for each of its schedules, all of them due at the same second.
import { Queue, Worker } from "bullmq";
import { say, sleep, toldToGo } from "./protocol.mjs";

const PER_SCHEDULER = 0.4; // milliseconds to store one: only a guess of how soon all can be due
const AT_ONCE = 100;
const NAME = "noop";

const { port, n, cap } = JSON.parse(process.argv[2]);
const connection = { host: "127.0.0.1", port, maxRetriesPerRequest: null };
const queue = new Queue(NAME, { connection });

async function arm() {
  for (let lead = n * PER_SCHEDULER + 3000; ; lead *= 2) {
    const at = new Date(Math.ceil((Date.now() + lead) / 1000) * 1000);
    const pattern = `${at.getUTCSeconds()} ${at.getUTCMinutes()} ${at.getUTCHours()} * * *`;
    for (let first = 0; first < n; first += AT_ONCE) {
      const some = [...Array(Math.min(AT_ONCE, n - first)).keys()];
      await Promise.all(some.map((k) => queue.upsertJobScheduler(`s${first + k}`, { pattern, tz: "UTC" }, { name: NAME })));
    }
    if (Date.now() < at - 1000) return at.getTime();
    await queue.obliterate({ force: true });
  }
}

// Says at (the second), then started (when each handler was called) once all were, or after `cap`.
await queue.waitUntilReady();
await toldToGo();
const at = await arm();
const started = [];
const worker = new Worker(NAME, async () => void started.push(Date.now() / 1000), { connection, concurrency: AT_ONCE });
await worker.waitUntilReady();
await sleep(at - Date.now() - 200);
say({ at: at / 1000 });
while (started.length < n && Date.now() < at + cap * 1000) await sleep(5);
say({ started: started.sort((a, b) => a - b) });
await new Promise(() => {});

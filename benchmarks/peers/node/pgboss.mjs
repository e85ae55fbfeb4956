// pg-boss in a measured process.
import { PgBoss } from "pg-boss";
import { run } from "./protocol.mjs";

const QUEUE = "noop";

run((url, settings) => {
  const make = async (options) => {
    const boss = new PgBoss({ connectionString: url, schedule: false, useListenNotify: true, ...options });
    boss.on("error", (error) => console.error(error));
    await boss.start();
    return boss;
  };
  let boss;
  return {
    async prepare() {
      boss = await make({ max: 2 });
      await boss.createQueue(QUEUE, { notify: true });
    },
    async open(connections) {
      boss = await make({ max: Math.max(2, connections), supervise: false });
    },
    async enqueueMany(count) {
      await boss.insert(QUEUE, Array(count).fill({ data: {} }));
    },
    async enqueue(sent) {
      await boss.send(QUEUE, sent ? { sent } : {});
    },
    async work(onJob) {
      boss = await make({});
      await boss.work(QUEUE, { ...settings, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true }, async (jobs) => {
        for (const job of jobs) onJob(job.data?.sent);
      });
      await new Promise(() => {});
    },
  };
});

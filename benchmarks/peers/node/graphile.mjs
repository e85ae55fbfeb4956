// graphile-worker in a measured process.
import { Logger, makeWorkerUtils, run as runWorker } from "graphile-worker";
import { run } from "./protocol.mjs";

const logger = new Logger(() => () => {});

run((url, settings) => {
  let utils;
  const open = (maxPoolSize) => makeWorkerUtils({ connectionString: url, logger, maxPoolSize });
  return {
    async prepare() {
      await (await open(2)).migrate();
    },
    async open(connections) {
      utils = await open(Math.max(2, connections));
    },
    async enqueueMany(count) {
      await utils.addJobs(Array(count).fill({ identifier: "noop", payload: {} }));
    },
    async enqueue(sent) {
      await utils.addJob("noop", sent ? { sent } : {});
    },
    async work(onJob) {
      const runner = await runWorker({
        preset: { worker: { connectionString: url, logger, ...settings } },
        taskList: { noop: (payload) => onJob(payload.sent) },
        noHandleSignals: true,
      });
      await runner.promise;
    },
  };
});

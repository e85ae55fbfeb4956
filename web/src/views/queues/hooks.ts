/** Queries for queues and for the workers that serve them. */
import type { Page } from "../../api/client";
import { useGet } from "../../api/hooks";
import type { Queue, Worker } from "../../api/schema";

export function useQueues() {
  return useGet<Page<Queue>>("queues", "/queues", { limit: 500 }, { rest: 300 });
}

/** Return a function that lists the live workers of a queue. */
export function useServing(): ((queue: string) => Worker[]) | undefined {
  const workers = useGet<Page<Worker>>("workers", "/workers", { limit: 500 }, { every: 10_000, rest: 1_000 });
  const alive = workers.data?.items.filter((worker) => worker.state === "working" || worker.state === "draining");
  return alive && ((queue) => alive.filter((worker) => queue in worker.queues));
}

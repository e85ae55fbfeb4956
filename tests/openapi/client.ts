// A program of a user: enqueue, list, cancel and wait, with the types that openapi-typescript generates.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

type Run = components["schemas"]["Run"];

declare const process: { env: Record<string, string> };

const { URL: baseUrl, TOKEN: token } = process.env;
const rota = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } });

function present<T>(value: { data?: T; error?: components["schemas"]["Problem"] }): T {
  if (value.data === undefined) throw new Error(`${value.error?.code}: ${value.error?.detail}`);
  return value.data;
}

async function enqueued(order: components["schemas"]["RunBody"]): Promise<Run> {
  const run = present(await rota.POST("/api/v1/runs", { body: { ...order, tags: ["typescript"] } }));
  if (!("state" in run)) throw new Error("several runs");
  return run;
}

async function finished(id: string): Promise<Run> {
  const run = present(await rota.GET("/api/v1/runs/{id}", { params: { path: { id } } }));
  return run.finished_at === null ? finished(id) : run;
}

const greeting = await finished((await enqueued({ job: "greet", payload: { name: "Ada" } })).id);
const later = await enqueued({ job: "greet", delay: "1h" });
const cancelled = present(
  await rota.POST("/api/v1/runs/{id}/cancel", { params: { path: { id: later.id } }, body: { reason: "a test" } }),
);
const list = present(await rota.GET("/api/v1/runs", { params: { query: { tag: "typescript", limit: 10 } } }));
const batch = present(await rota.POST("/api/v1/runs", { body: { runs: [{ job: "greet" }, { job: "greet" }] } }));
const refusal = await rota.POST("/api/v1/runs", { body: { job: "gret" } });

console.log(
  JSON.stringify({
    result: greeting.result,
    cancelled: cancelled.state,
    listed: list.items.map((run) => run.job),
    batch: "items" in batch ? batch.items.length : 1,
    refusal: refusal.error?.code,
  }),
);

/** Acts that help with an item of attention, as requests of the API. */
import { api, part } from "../../api/client";
import type { Action } from "../../api/schema";

type Send = (args: Record<string, string>) => Promise<unknown>;

const SEND: Record<string, Send> = {
  "schedules.trigger": ({ name }) => api.post(`/schedules/${part(name!)}/trigger`, {}),
  "schedules.backfill": ({ name, from, to }) => api.post(`/schedules/${part(name!)}/backfill`, { from, to }),
  "schedules.resume": ({ name }) => api.post(`/schedules/${part(name!)}/resume`, {}),
  cancel: ({ run_id }) => api.post(`/runs/${part(run_id!)}/cancel`, {}),
  resume_queue: ({ name }) => api.post(`/queues/${part(name!)}/resume`),
  resume_job: ({ name }) => api.post(`/jobs/${part(name!)}/resume`, {}),
  "notifications.test": ({ name }) => api.post(`/notifications/${part(name!)}/test`, {}),
  "database.accept": () => api.post("/database/accept", {}),
};

const ADMIN = ["notifications.test", "database.accept"];

/** Return whether the page can carry it out. A retry of many has a dialog of its own. */
export const isKnown = ({ verb }: Action) => verb in SEND || verb === "retry_many";

export const needsAdmin = ({ verb }: Action) => ADMIN.includes(verb);

export const send = ({ verb, args }: Action) => SEND[verb]!(args as Record<string, string>);

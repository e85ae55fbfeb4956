/** Addresses of the rows behind a number or a name. */
import { part } from "../../api/client";
import type { Attention } from "../../api/schema";
import { withSearch } from "../../router";
import { format } from "../runs/search";

export const runsWith = (...terms: string[]) => withSearch("/runs", { q: terms.join(" ") });

/** Format one token of the search box. */
const term = (name: string, value: string) => format([{ name, value }]);

export function linkOf({ kind, subject }: Attention): string | null {
  if (subject === null) return kind === "signals_untold" || kind === "polling" || kind === "clock" ? "/workers" : null;
  switch (kind) {
    case "schedule_overdue":
      return `/schedules/${part(subject)}`;
    case "run_stuck":
    case "run_lingering":
      return `/runs/${part(subject)}`;
    case "queue_unserved":
    case "queue_paused":
      return `/queues/${part(subject)}`;
    case "job_unknown":
    case "job_paused":
      return runsWith(term("job", subject), "state:queued");
    case "expectation_breached": {
      const [sort, name] = [subject.slice(0, subject.indexOf("/")), subject.slice(subject.indexOf("/") + 1)];
      return sort === "schedule" ? `/schedules/${part(name)}` : runsWith(term("job", name));
    }
    default:
      return null;
  }
}

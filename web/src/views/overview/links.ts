/** Addresses of the rows behind a number or a name. */
import { part } from "../../api/client";
import type { Attention } from "../../api/schema";
import { withSearch } from "../../router";
import { format } from "../runs/search";

export const runsWith = (...terms: string[]) => withSearch("/runs", { q: terms.join(" ") });

/** Format one token of the search box. */
const term = (name: string, value: string) => format([{ name, value }]);

const OF_THE_FLEET = ["signals_untold", "polling", "clock", "versions_apart", "database_copied", "epoch_new"];

export function linkOf({ kind, subject, scope }: Attention): string | null {
  if (kind === "job_unknown" && subject === null) return "/workers";
  if (subject === null) return OF_THE_FLEET.includes(kind) ? "/system" : null;
  switch (kind) {
    case "schedule_failing":
      // Of one scope, it is named behind the schedule.
      return `/schedules/${part(scope ? subject.slice(0, -scope.length - 1) : subject)}`;
    case "schedule_overdue":
    case "schedule_missed":
    case "schedule_skipped":
    case "schedule_paused":
      return `/schedules/${part(subject)}`;
    case "run_stuck":
    case "run_lingering":
    case "run_slow":
      return `/runs/${part(subject)}`;
    case "worker_gone":
      return `/workers/${part(subject)}`;
    case "failure_rate":
      return runsWith(term("job", subject), "state:failed", "state:timed_out", "since:1h");
    case "limit_starves":
      return runsWith("state:queued");
    case "delivery_refused":
      return "/alerts";
    case "queue_unserved":
    case "queue_paused":
    case "queue_growing":
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

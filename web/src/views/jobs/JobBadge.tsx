/** The state of a job as a badge. */
import type { JobState } from "../../api/schema";
import { useWords } from "../../i18n";
import { Badge, type Shown, type Tone } from "../../ui";
import { jobsWords } from "./words";

const LOOKS: Record<JobState, [Tone, Shown]> = {
  pending: ["idle", "queued"],
  scheduled: ["idle", "scheduled"],
  running: ["busy", "running"],
  paused: ["warn", "waiting"],
  completed: ["good", "succeeded"],
  failed: ["bad", "failed"],
  cancelled: ["idle", "cancelled"],
};

export function JobBadge({ state }: { state: JobState }) {
  const t = useWords(jobsWords);
  const [tone, shape] = LOOKS[state];
  return (
    <Badge tone={tone} shape={shape}>
      {t[state]}
    </Badge>
  );
}

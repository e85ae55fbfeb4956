/** The state of a schedule as a badge. */
import { useWords } from "../../i18n";
import { Badge, type Tone } from "../../ui";
import type { ScheduleState } from "./types";
import { schedulesWords } from "./words";

type Shown = ScheduleState | "failing";

const TONES: Record<Shown, Tone> = { failing: "bad", active: "good", paused: "warn", "job paused": "warn", "job cancelled": "warn", disabled: "idle", ended: "idle" };
const SHAPES = { failing: "failed", active: "running", paused: "waiting", "job paused": "waiting", "job cancelled": "cancelled", disabled: "cancelled", ended: "skipped" } as const;

export function ScheduleBadge({ state }: { state: Shown }) {
  const t = useWords(schedulesWords);
  return (
    <Badge tone={TONES[state]} shape={SHAPES[state]}>
      {t[state]}
    </Badge>
  );
}

/** State badge: shape, word and colour. Each of them identifies the state alone. */
import type { Outcome, RunState } from "../../api/schema";
import { common } from "../../i18n/common";
import { useWords } from "../../i18n";

export type Tone = "good" | "bad" | "warn" | "busy" | "wait" | "idle";
export type Shown = RunState | Outcome;

const SHAPES: Record<RunState, string> = {
  scheduled: "M6 1a5 5 0 1 0 0 10A5 5 0 0 0 6 1zm0 1.2a3.8 3.8 0 1 1 0 7.6 3.8 3.8 0 0 1 0-7.6zM5.4 3h1.2v2.8l1.9 1.1-.6 1L5.4 6.5z",
  queued: "M6 1a5 5 0 1 0 0 10A5 5 0 0 0 6 1zm0 1.4a3.6 3.6 0 1 1 0 7.2 3.6 3.6 0 0 1 0-7.2z",
  running: "M3 1.2v9.6L11 6z",
  waiting: "M2.5 1.5h2.6v9H2.5zM6.9 1.5h2.6v9H6.9z",
  cancelling: "M1.5 1.5h9v9h-9zm1.4 1.4v6.2h6.2V2.9z",
  succeeded: "M4.6 10.2.9 6.5l1.3-1.3 2.4 2.4 5.2-5.3 1.3 1.3z",
  failed: "M2.4 1.1 6 4.7l3.6-3.6 1.3 1.3L7.3 6l3.6 3.6-1.3 1.3L6 7.3l-3.6 3.6-1.3-1.3L4.7 6 1.1 2.4z",
  timed_out: "M1.5.8h9v1.5L7.2 6l3.3 3.7v1.5h-9V9.7L4.8 6 1.5 2.3z",
  cancelled: "M1.5 1.5h9v9h-9z",
  expired: "M6 .8 11.4 11H.6z",
  skipped: "M1 2v8l4.6-4zM6 2v8l4.6-4zM10 2h1.2v8H10z",
};
const AS_STATES: Record<Exclude<Outcome, RunState>, RunState> = { lost: "expired", snoozed: "scheduled", handed_back: "queued" };
const TONES: Record<RunState, Tone> = {
  scheduled: "idle",
  queued: "idle",
  running: "busy",
  waiting: "wait",
  cancelling: "warn",
  succeeded: "good",
  failed: "bad",
  timed_out: "bad",
  cancelled: "idle",
  expired: "bad",
  skipped: "idle",
};

export const STATES = Object.keys(SHAPES) as RunState[];
export const FINAL: ReadonlySet<RunState> = new Set(["succeeded", "failed", "timed_out", "cancelled", "expired", "skipped"]);

const lookOf = (state: Shown): RunState => (state in AS_STATES ? AS_STATES[state as keyof typeof AS_STATES] : (state as RunState));

export const toneOf = (state: Shown): Tone => TONES[lookOf(state)] ?? "idle";
export const shapeOf = (state: Shown): string => SHAPES[lookOf(state)] ?? SHAPES.queued;

/** Badge of a run state. `word` replaces the name of the state. */
export function StateBadge({ state, filled = false, word }: { state: Shown; filled?: boolean; word?: string }) {
  const t = useWords(common);
  return (
    <span className={`badge tone-${toneOf(state)}${filled ? " filled" : ""}`} data-state={state}>
      <svg viewBox="0 0 12 12" aria-hidden="true">
        <path d={shapeOf(state)} fillRule="evenodd" />
      </svg>
      {word ?? t[state]}
    </span>
  );
}

/** Badge for anything that is not a run state: `paused`, `alive`. The shape is optional. */
export function Badge({ tone = "idle", shape, children }: { tone?: Tone; shape?: Shown; children: string }) {
  return (
    <span className={`badge filled tone-${tone}`}>
      {shape && (
        <svg viewBox="0 0 12 12" aria-hidden="true">
          <path d={shapeOf(shape)} fillRule="evenodd" />
        </svg>
      )}
      {children}
    </span>
  );
}

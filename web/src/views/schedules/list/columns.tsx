/** The columns of the list of schedules. */
import { useWords } from "../../../i18n";
import { common } from "../../../i18n/common";
import { Link } from "../../../router";
import { Button, Menu, OutcomeStrip, StateBadge, Time, duration, useAbsolute, type Column } from "../../../ui";
import type { Acting } from "../actions/actions";
import { schedulePath } from "../links";
import { NextTime } from "../NextTime";
import { badges, policyWords } from "../policies";
import { expressionOf, useRule } from "../rules";
import { ScheduleBadge } from "../ScheduleBadge";
import type { RecentRun, Schedule } from "../types";
import { schedulesWords } from "../words";

/** Switch that pauses, resumes or enables a schedule. */
export function Toggle({ schedule, acting, may }: { schedule: Schedule; acting: Acting; may: boolean }) {
  const t = useWords(schedulesWords);
  const on = ["active", "job paused", "job cancelled"].includes(schedule.state);
  const action = on ? "pause" : schedule.enabled ? "resume" : "enable";
  return (
    <button
      type="button"
      role="switch"
      aria-checked={on}
      aria-label={on ? t.toggleOn(schedule.name) : t.toggleOff(schedule.name)}
      title={on ? t.pause : action === "enable" ? t.enable : t.resume}
      className="schedules-switch"
      disabled={!may || schedule.state === "ended"}
      onClick={() => acting.act(action, schedule)}
    />
  );
}

function NameCell({ schedule, acting, may }: { schedule: Schedule; acting: Acting; may: boolean }) {
  return (
    <div className="schedules-name">
      <Toggle schedule={schedule} acting={acting} may={may} />
      <div className="schedules-two">
        <span className="row tight">
          <Link to={schedulePath(schedule.name)} className="hostile strong">
            {schedule.name}
          </Link>
          {schedule.state !== "active" && <ScheduleBadge state={schedule.state} />}
        </span>
        <span className="quiet hostile">{schedule.job}</span>
        {schedule.trouble && <span className="tone-bad schedules-trouble hostile">{schedule.trouble}</span>}
      </div>
    </div>
  );
}

function RuleCell({ schedule }: { schedule: Schedule }) {
  const rule = useRule();
  const t = useWords(policyWords);
  const words = rule(schedule);
  return (
    <div className="schedules-two">
      <span className="hostile">{words}</span>
      <span className="row tight">
        <code className="quiet hostile">{expressionOf(schedule.definition)}</code>
        {badges(schedule.definition, t).map((badge) => (
          <span key={badge} className="tag">
            {badge}
          </span>
        ))}
      </span>
    </div>
  );
}

export const lastOf = (schedule: Schedule): RecentRun | undefined => schedule.recent?.[schedule.recent.length - 1];

function Last({ schedule }: { schedule: Schedule }) {
  const t = useWords(schedulesWords);
  const both = useWords(common);
  const absolute = useAbsolute(schedule.timezone);
  const last = lastOf(schedule);
  if (!last) return <span className="quiet">{t.never}</span>;
  const titled = (run: RecentRun) => `${absolute(run.plan_time)}: ${both[run.state]}${run.duration_ms === null ? "" : `, ${duration(run.duration_ms)}`}`;
  return (
    <div className="schedules-two">
      <span className="row tight">
        <Link to={`/runs/${last.run_id}`} className="schedules-outcome">
          <StateBadge state={last.state} />
        </Link>
        <span className="quiet">
          <Time at={last.finished_at ?? last.plan_time} zone={schedule.timezone} />
          {last.duration_ms !== null && <> · {duration(last.duration_ms)}</>}
        </span>
      </span>
      <span className="schedules-strip">
        <OutcomeStrip items={schedule.recent!.map((run) => ({ state: run.state, title: titled(run) }))} />
      </span>
    </div>
  );
}

function ActionsCell({ schedule, acting }: { schedule: Schedule; acting: Acting }) {
  const t = useWords(schedulesWords);
  const entries = acting.entries(schedule);
  if (!entries.length) return null;
  return (
    <span className="schedules-actions">
      <Button look="plain" small icon="play" label={t.runNowOf(schedule.name)} className="wide" onClick={() => acting.act("run", schedule)} />
      {entries.some(({ id }) => id === "edit") && (
        <Link to={`${schedulePath(schedule.name)}/edit`} className="button plain small icon wide" aria-label={t.editOf(schedule.name)} title={t.edit}>
          <svg viewBox="0 0 16 16" fill="none" stroke="currentColor" strokeWidth="1.4" strokeLinejoin="round" aria-hidden="true">
            <path d="M3 13l.6-2.8L10.8 3l2.2 2.2-7.2 7.2z" />
          </svg>
        </Link>
      )}
      <Menu label={t.more(schedule.name)} icon="more" className="button plain small" entries={entries} onAction={(id) => acting.act(id, schedule)} />
    </span>
  );
}

export function useColumns(acting: Acting, may: boolean): Column<Schedule>[] {
  const t = useWords(schedulesWords);
  return [
    { id: "name", name: t.name, cell: (row) => <NameCell schedule={row} acting={acting} may={may} /> },
    { id: "rule", name: t.rule, cell: (row) => <RuleCell schedule={row} />, priority: "low" },
    { id: "next", name: t.next, cell: (row) => <NextTime schedule={row} />, width: "8.75rem" },
    { id: "last", name: t.last, cell: (row) => <Last schedule={row} />, priority: "low", width: "16rem" },
    {
      id: "took",
      name: t.took,
      number: true,
      priority: "lowest",
      width: "5.5rem",
      cell: ({ p50_duration_ms: p50, p95_duration_ms: p95 }) =>
        p50 == null ? (
          <span className="quiet">–</span>
        ) : (
          <span className="schedules-two">
            <span>{duration(p50)}</span>
            <span className="quiet">{duration(p95 ?? p50)}</span>
          </span>
        ),
    },
    ...(may ? [{ id: "actions", name: t.actions, number: true, cell: (row: Schedule) => <ActionsCell schedule={row} acting={acting} />, width: "6rem" }] : []),
  ];
}

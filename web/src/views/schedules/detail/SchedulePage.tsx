/** Page of one schedule: next runs, ledger, simulation, events and definition. */
import type { ReactNode } from "react";
import { writeJson } from "../../../api/json";
import type { Page } from "../../../api/client";
import { useGet, useMay } from "../../../api/hooks";
import type { Event, Fire, SimulationReport } from "../../../api/schema";
import { useWords } from "../../../i18n";
import { useSaid } from "../../../i18n/said";
import { Link, navigate } from "../../../router";
import { Button, Card, DataTable, EmptyState, Facts, Icon, JsonTree, Menu, PageHeader, ProblemNotice, Tabs, Time, duration, useKeys, useZone, type Column } from "../../../ui";
import { AttentionHere, useAttention } from "../../overview/AttentionHere";
import { hasPlanTimes, useActions, type Acting } from "../actions/actions";
import { detailWords } from "./words";
import { NextRuns } from "../NextRuns";
import { Heatmap } from "./Heatmap";
import { Ledger } from "./Ledger";
import { runsOf, schedulePath } from "../links";
import { NextTime } from "../NextTime";
import { policyWords, sentences } from "../policies";
import { expressionOf, useRule } from "../rules";
import { ScheduleBadge } from "../ScheduleBadge";
import "../schedules.css";
import { Trends } from "./Trends";
import type { Schedule } from "../types";
import { Simulation } from "./Simulation";
import { schedulesWords, viewName } from "../words";

const FIRES = 20;

export function SchedulePage({ params }: { params: Record<string, string> }) {
  const name = params.name!;
  const t = useWords(detailWords);
  const back = { to: "/schedules", name: useWords(viewName).name };
  const found = useGet<Schedule>("schedules", schedulePath(name), { recent: 100 });
  const schedule = found.data;
  const fires = useGet<SimulationReport>("schedules", `${schedulePath(name)}/simulate`, {}, { body: { span: "0s", limit: FIRES }, enabled: !!schedule, rest: 5_000, every: 30_000 });
  const acting = useActions(() => navigate("/schedules"));
  const items = useAttention(schedulePath(name)).filter(({ kind }) => kind !== "schedule_paused"); // it has a notice
  if (!schedule || found.error?.status === 404) {
    return (
      <>
        <PageHeader title={name} back={back} />
        {found.error?.status === 404 ? (
          <Card bare>
            <EmptyState title={t.missing}>
              {t.missingAbout} <Link to={runsOf(name)}>{t.toRuns}</Link>
            </EmptyState>
          </Card>
        ) : found.error ? (
          <ProblemNotice problem={found.error} onRetry={() => void found.refetch()} />
        ) : (
          <div className="schedules-wait" aria-busy="true" />
        )}
      </>
    );
  }
  const next = fires.data?.fires;
  return (
    <>
      <Head schedule={schedule} isFailing={items.some(({ kind }) => kind === "schedule_failing")} acting={acting} back={back} />
      {found.error && <ProblemNotice problem={found.error} onRetry={() => void found.refetch()} />}
      <Notices schedule={schedule} />
      <AttentionHere items={items} rows={{ schedule_failing: runsOf(name, "failed"), schedule_skipped: runsOf(name, "skipped") }} />
      <Tabs
        label={t.sections}
        items={[
          { id: "overview", name: t.overview, content: <Overview schedule={schedule} fires={next} problem={fires.error && <ProblemNotice problem={fires.error} />} /> },
          { id: "ledger", name: t.ledger, content: <Ledger schedule={schedule} fires={next} /> },
          ...(schedule.definition.following === undefined ? [{ id: "simulate", name: t.simulate, content: <Simulation schedule={schedule} /> }] : []),
          { id: "events", name: t.events, content: <Events schedule={schedule} /> },
          { id: "definition", name: t.definition, content: <Definition schedule={schedule} /> },
        ]}
      />
      {acting.dialogs}
    </>
  );
}

function Head({ schedule, isFailing, acting, back }: { schedule: Schedule; isFailing: boolean; acting: Acting; back: { to: string; name: string } }) {
  const t = useWords(schedulesWords);
  const d = useWords(detailWords);
  const operator = useMay("operator");
  const admin = useMay("admin");
  const rule = useRule();
  const toggle = schedule.paused_at ? "resume" : "pause";
  useKeys({
    r: () => operator && acting.act("run", schedule),
    p: () => operator && schedule.state !== "ended" && acting.act(toggle, schedule),
    e: () => admin && acting.act("edit", schedule),
  });
  const expression = expressionOf(schedule.definition);
  const { description } = schedule.definition;
  return (
    <PageHeader
      title={schedule.name}
      back={back}
      heading={
        <span className="row">
          {schedule.name} <ScheduleBadge state={isFailing && schedule.state === "active" ? "failing" : schedule.state} />
        </span>
      }
      about={
        <>
          {rule(schedule)} <code className="quiet">{expression}</code>
          {typeof description === "string" && (
            <>
              <br />
              {description}
            </>
          )}
        </>
      }
      actions={
        <>
          <Link to={runsOf(schedule.name)} className="button plain">
            {d.toRuns}
          </Link>
          {operator && (
            <Button icon={toggle === "pause" ? "pause" : "play"} disabled={schedule.state === "ended"} onClick={() => acting.act(toggle, schedule)}>
              {t[toggle]}
            </Button>
          )}
          {admin && (
            <Link to={`${schedulePath(schedule.name)}/edit`} className="button">
              <Icon name="edit" />
              {t.edit}
            </Link>
          )}
          {operator && (
            <Button icon="play" look="primary" busy={acting.busy} onClick={() => acting.act("run", schedule)}>
              {t.runNow}
            </Button>
          )}
          {operator && <Menu label={t.more(schedule.name)} icon="more" className="button" entries={acting.entries(schedule).filter(({ id }) => !["run", "edit", "pause", "resume"].includes(id))} onAction={(id) => acting.act(id, schedule)} />}
        </>
      }
    />
  );
}

function Notices({ schedule }: { schedule: Schedule }) {
  const t = useWords(detailWords);
  const said = useSaid();
  return (
    <>
      {schedule.paused_at && (
        <div className="notice tone-warn" role="status">
          <strong>
            {schedule.paused_by ? t.pausedBy(schedule.paused_by) : t.pausedNow} <Time at={schedule.paused_at} zone={schedule.timezone} />
          </strong>
          {schedule.pause_reason && <span>{schedule.pause_reason}</span>}
          {schedule.resume_at && (
            <span>
              {t.goesOn} <Time at={schedule.resume_at} zone={schedule.timezone} show="both" />
            </span>
          )}
        </div>
      )}
      {schedule.job_paused && (
        <div className="notice tone-warn" role="status">
          <strong>{schedule.job_cancelled ? t.jobCancelled : t.jobPaused}</strong>
        </div>
      )}
      {schedule.trouble && (
        <div className="notice tone-bad" role="status">
          <strong>{t.trouble}</strong>
          <span>{said(schedule.trouble)}</span>
        </div>
      )}
    </>
  );
}

function Overview({ schedule, fires, problem }: { schedule: Schedule; fires: Fire[] | undefined; problem: ReactNode }) {
  const t = useWords(detailWords);
  const p = useWords(policyWords);
  const zone = useZone(schedule.timezone);
  return (
    <div className="schedules-columns">
      <div className="stack">
        <Heatmap schedule={schedule} fires={fires} />
        <Trends schedule={schedule} />
        <Card title={t.policies}>
          <Facts items={sentences(schedule.definition, p)} />
        </Card>
      </div>
      <div className="stack">
        <Card>
          <Facts
            items={[
              [t.next, <NextTime key="next" schedule={schedule} />],
              [t.job, <Link key="job" to={`/schedules?job=${encodeURIComponent(schedule.job)}`}>{schedule.job}</Link>],
              [t.zone, schedule.timezone],
              [t.took, schedule.p50_duration_ms == null ? "–" : `${duration(schedule.p50_duration_ms)} / ${duration(schedule.p95_duration_ms ?? schedule.p50_duration_ms)}`],
              [t.fired, schedule.fired.toLocaleString()],
              [t.owner, schedule.owner],
              [t.changed, <Time key="changed" at={schedule.updated_at} zone={schedule.timezone} />],
            ]}
          />
        </Card>
        <Card title={t.fires} bare>
          {problem}
          {!hasPlanTimes(schedule) ? (
            <p className="inside quiet">{t.noPlanTimes}</p>
          ) : fires?.length === 0 ? (
            <p className="inside quiet">{t.noFires}</p>
          ) : (
            <>
              {schedule.state !== "active" && <p className="inside quiet">{t.notNow}</p>}
              {!problem && <NextRuns fires={fires} zone={zone} expected={FIRES} />}
            </>
          )}
        </Card>
      </div>
    </div>
  );
}

function Events({ schedule }: { schedule: Schedule }) {
  const t = useWords(detailWords);
  const found = useGet<Page<Event>>("schedules", `${schedulePath(schedule.name)}/events`, {}, { rest: 2_000 });
  const columns: Column<Event>[] = [
    { id: "when", name: t.when, cell: (event) => <Time at={event.at} zone={schedule.timezone} show="absolute" /> },
    { id: "what", name: t.what, cell: (event) => event.type.replaceAll("_", " ") },
    { id: "by", name: t.by, cell: (event) => <span className="hostile">{event.actor ?? "–"}</span>, priority: "low" },
    { id: "also", name: t.also, cell: (event) => (Object.keys(event.details).length ? <code className="quiet">{writeJson(event.details)}</code> : null), clip: true, width: "45%", priority: "low" },
  ];
  if (found.error && !found.data) return <ProblemNotice problem={found.error} onRetry={() => void found.refetch()} />;
  return (
    <Card bare>
      <DataTable label={t.events} columns={columns} rows={found.data && [...found.data.items].reverse()} rowKey={(event) => String(event.seq)} empty={<EmptyState title={t.noEvents} />} expected={3} />
    </Card>
  );
}

function Definition({ schedule }: { schedule: Schedule }) {
  const t = useWords(detailWords);
  const admin = useMay("admin");
  return (
    <Card title={`${t.revision} ${schedule.revision}`}>
      {!admin && <p className="quiet">{t.hidden}</p>}
      <JsonTree value={schedule.definition} label={t.definition} />
    </Card>
  );
}

/** Ledger: the outcome of each plan time, newest first, with an explanation. */
import { useMemo, useState } from "react";
import type { Page } from "../../../api/client";
import { useGet } from "../../../api/hooks";
import type { Explanation, Fire, Occurrence, RunState } from "../../../api/schema";
import { useWords } from "../../../i18n";
import { useSaid } from "../../../i18n/said";
import { Link, useParameter } from "../../../router";
import { Badge, Button, Card, ChoiceChips, DataTable, Dialog, EmptyState, Pagination, ProblemNotice, StateBadge, useAbsolute, type Column, type Shown, type Tone } from "../../../ui";
import { byInstant, isInstant, READ, type Instant, type Line } from "./instants";
import { detailWords } from "./words";
import { schedulePath } from "../links";
import type { Schedule } from "../types";

const SPANS = ["1", "7", "30", "90", "365"] as const;
const KINDS = ["ran", "skipped", "coalesced", "missed", "paused", "pruned", "pending"] as const;
type Kind = (typeof KINDS)[number];
const LOOKS: Record<Exclude<Kind, "ran" | "skipped">, [Tone, Shown]> = {
  coalesced: ["idle", "queued"],
  missed: ["warn", "expired"],
  paused: ["idle", "waiting"],
  pruned: ["idle", "cancelled"],
  pending: ["idle", "scheduled"],
};
const MOST = 10_000;
const STEP = 100;

/** Return the shortest span with about 20 plan times. */
function usualSpan(fires: Fire[] | undefined): string {
  const last = fires?.[fires.length - 1];
  if (!fires || fires.length < 2 || !last) return "30";
  const gap = (Date.parse(last.plan_time) - Date.parse(fires[0]!.plan_time)) / (fires.length - 1) / 86_400_000;
  return SPANS.find((span) => Number(span) >= gap * 20) ?? "365";
}

const instantOf = (one: Occurrence) => one.plan_time ?? one.to_at ?? one.from_at!;
const keyOf = (one: Line) => (isInstant(one) ? `at ${one.at}` : occurrenceKey(one));
const occurrenceKey = (one: Occurrence) => `${one.kind} ${one.from_at ?? ""} ${instantOf(one)} ${one.scope?.kind ?? ""}/${one.scope?.id ?? ""} ${one.run_id ?? ""}`;

export function Ledger({ schedule, fires }: { schedule: Schedule; fires: Fire[] | undefined }) {
  const t = useWords(detailWords);
  const [given, setSpan] = useParameter("span");
  const [kinds, setKinds] = useParameter("kind");
  const span = (SPANS as readonly string[]).includes(given ?? "") ? given! : usualSpan(fires);
  const [now] = useState(() => Math.floor(Date.now() / 60_000) * 60_000);
  const [most, setMost] = useState(STEP);
  const [asked, setAsked] = useState<string | null>(null);
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const from = new Date(now - Number(span) * 86_400_000).toISOString();
  const found = useGet<Page<Occurrence>>("schedules", `${schedulePath(schedule.name)}/occurrences`, { from, limit: MOST }, { keep: true, rest: 2_000 });
  const wanted = kinds ? kinds.split(",") : [];
  const rows = useMemo(
    () => found.data && byInstant([...found.data.items].reverse().filter((one) => !wanted.length || wanted.includes(one.kind)), open),
    // eslint-disable-next-line
    [found.data, kinds, open],
  );
  const toggle = (at: string) => setOpen((before) => (before.has(at) ? new Set([...before].filter((each) => each !== at)) : new Set([...before, at])));
  const columns = useLedgerColumns(schedule, setAsked, open, toggle);
  return (
    <div className="stack">
      <div className="schedules-filter">
        <select className="input schedules-job" aria-label={t.span} value={span} onChange={(event) => setSpan(event.target.value)}>
          {SPANS.map((each) => (
            <option key={each} value={each}>
              {t[`span_${each}`]}
            </option>
          ))}
        </select>
        <ChoiceChips<Kind> label={t.kinds} choices={KINDS.map((id) => ({ id, name: t[`kind_${id}`] }))} chosen={wanted as Kind[]} onChange={(next) => setKinds(next.join(",") || null)} />
      </div>
      {found.error && <ProblemNotice problem={found.error} onRetry={() => void found.refetch()} />}
      {found.data?.next_cursor && <p className="quiet">{t.onlySome}</p>}
      <Card bare>
        <DataTable
          label={t.ledger}
          columns={columns}
          rows={rows?.slice(0, most)}
          rowKey={keyOf}
          asked={open}
          empty={<EmptyState title={t.noOccurrences}>{t.noOccurrencesAbout}</EmptyState>}
          footer={<Pagination count={Math.min(most, rows?.length ?? 0)} hasMore={(rows?.length ?? 0) > most} loading={false} onMore={() => setMost(most + STEP)} />}
        />
      </Card>
      {asked && <ExplainDialog schedule={schedule} at={asked} close={() => setAsked(null)} />}
    </div>
  );
}

function useLedgerColumns(schedule: Schedule, explain: (at: string) => void, open: ReadonlySet<string>, toggle: (at: string) => void): Column<Line>[] {
  const t = useWords(detailWords);
  const absolute = useAbsolute(schedule.timezone);
  const scoped = schedule.definition.scopes !== undefined;
  return [
    {
      id: "at",
      name: t.planTime,
      cell: (one) =>
        isInstant(one) ? (
          <strong>
            <time dateTime={one.at}>{absolute(one.at)}</time>
          </strong>
        ) : one.plan_time ? (
          <time dateTime={one.plan_time}>{absolute(one.plan_time)}</time>
        ) : (
          <span className="schedules-two">
            <span>
              {absolute(one.from_at!)}
              {one.to_at && one.to_at !== one.from_at && " –"}
            </span>
            {one.to_at && one.to_at !== one.from_at && <span>{absolute(one.to_at)}</span>}
            <span className="quiet">{t.count(one.count)}</span>
          </span>
        ),
    },
    { id: "kind", name: t.kind, cell: (one) => (isInstant(one) ? <Summary instant={one} /> : <KindBadge one={one} />) },
    ...(scoped ? [{ id: "scope", name: t.scope, cell: (one: Line) => (isInstant(one) ? <Scopes instant={one} open={open.has(one.at)} toggle={() => toggle(one.at)} /> : one.scope ? <span className="hostile">{`${one.scope.kind}/${one.scope.id}`}</span> : "–") }] : []),
    { id: "reason", name: t.reason, cell: (one) => !isInstant(one) && <span className="hostile quiet">{one.reason?.replaceAll("_", " ") ?? ""}</span>, priority: "low" },
    { id: "run", name: t.run, cell: (one) => !isInstant(one) && one.run_id && <Link to={`/runs/${one.run_id}`} className="mono" title={one.run_id}>{one.run_id.slice(-8)}</Link>, priority: "lowest" },
    {
      id: "explain",
      name: t.explain,
      width: "5rem",
      cell: (one) => {
        const at = isInstant(one) ? one.at : instantOf(one);
        return (
          <Button small look="plain" aria-label={t.explainTime(absolute(at))} onClick={() => explain(at)}>
            {t.explain}
          </Button>
        );
      },
    },
  ];
}

/** One line for all scopes: `37 succeeded, 2 failed, 1 cancelled`. */
function Summary({ instant }: { instant: Instant }) {
  const t = useWords(detailWords);
  const told = READ.filter((outcome) => instant.counts[outcome]).map((outcome) => `${instant.counts[outcome]!.toLocaleString()} ${t[outcome]}`);
  return <strong>{told.join(", ")}</strong>;
}

function Scopes({ instant, open, toggle }: { instant: Instant; open: boolean; toggle: () => void }) {
  const t = useWords(detailWords);
  return (
    <>
      {t.scopes(instant.total)}{" "}
      {(open || instant.hidden > 0) && (
        <Button small look="plain" aria-expanded={open} onClick={toggle}>
          {open ? t.listFewer : t.listAll(instant.total)}
        </Button>
      )}
    </>
  );
}

function KindBadge({ one }: { one: Occurrence }) {
  const t = useWords(detailWords);
  if ((one.kind === "ran" || one.kind === "skipped") && one.state) return <StateBadge state={one.state as RunState} />;
  const [tone, shape] = LOOKS[one.kind as keyof typeof LOOKS] ?? ["idle", "skipped"];
  return (
    <Badge tone={tone} shape={shape}>
      {t[`kind_${one.kind as Kind}`] ?? one.kind}
    </Badge>
  );
}

const INSTANT = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g;

function ExplainDialog({ schedule, at, close }: { schedule: Schedule; at: string; close: () => void }) {
  const t = useWords(detailWords);
  const absolute = useAbsolute(schedule.timezone);
  const said = useSaid();
  const found = useGet<Explanation>("schedules", `${schedulePath(schedule.name)}/explain`, { at }, { rest: 2_000 });
  return (
    <Dialog title={t.explainTime(absolute(at))} open onClose={close}>
      {found.error && <ProblemNotice problem={found.error} />}
      <div className="stack hostile">
        {found.data ? found.data.words.map((words) => <p key={words}>{said(words).replace(INSTANT, (instant) => absolute(instant))}</p>) : !found.error && <span className="skeleton" style={{ width: "80%" }} />}
      </div>
    </Dialog>
  );
}

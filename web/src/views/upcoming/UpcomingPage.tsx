/** Upcoming page: what is to begin soon, by plan times, delays and retries. */
import { useMemo, useState } from "react";
import { part } from "../../api/client";
import { useGet } from "../../api/hooks";
import type { UpcomingRun, UpcomingRuns } from "../../api/schema";
import { useLocale, useWords } from "../../i18n";
import { useSaid } from "../../i18n/said";
import { Link, useParameter } from "../../router";
import { Badge, Button, Card, Countdown, DataTable, EmptyState, PageHeader, ProblemNotice, SearchBox, Time, useNow, useZone, type Column } from "../../ui";
import { RunLink } from "../runs/RunLink";
import { upcomingWords, viewName } from "./words";
import "./upcoming.css";

const RANGES = ["15m", "1h", "6h", "1d"] as const;
type Range = (typeof RANGES)[number];
const USUAL: Range = "1h";
const MOST = 500;
const EACH = 6;

export function UpcomingPage() {
  const t = useWords(upcomingWords);
  const { name } = useWords(viewName);
  const [chosen, choose] = useParameter("within");
  const [find, setFind] = useParameter("q");
  const range: Range = RANGES.find((each) => each === chosen) ?? USUAL;
  const upcoming = useGet<UpcomingRuns>("schedules", "/upcoming", { within: range, limit: MOST, each: EACH }, { keep: true, rest: 1_000, every: 15_000 });
  const items = upcoming.data?.items;
  const rows = useMemo(() => items?.filter((item) => matches(item, find ?? "")), [items, find]);
  return (
    <>
      <PageHeader
        title={name}
        about={upcoming.data ? <About found={upcoming.data} range={t[range]} /> : "\u00a0"}
        actions={
          <div className="ranges" role="group" aria-label={t.range}>
            {RANGES.map((each) => (
              <button key={each} type="button" aria-pressed={each === range} onClick={() => choose(each === USUAL ? null : each)}>
                {t[each]}
              </button>
            ))}
          </div>
        }
      />
      {upcoming.error && <ProblemNotice problem={upcoming.error} onRetry={() => void upcoming.refetch()} />}
      {upcoming.data?.truncated && <p className="notice tone-warn">{t.truncated}</p>}
      {!!items?.length && <SearchBox label={t.find} placeholder={t.find} value={find ?? ""} onChange={(text) => setFind(text || null)} shortcut="/" />}
      {(items || !upcoming.error) && (
        <Card bare>
          <Table rows={rows} old={upcoming.isPlaceholderData} asked={`${range} ${find}`} empty={items?.length ? <NoMatch onAll={() => setFind(null)} /> : <EmptyState title={t.emptyTitle}>{t.empty}</EmptyState>} />
        </Card>
      )}
    </>
  );
}

function matches(item: UpcomingRun, text: string): boolean {
  const wanted = text.trim().toLowerCase();
  return !wanted || [item.schedule, item.job, item.queue].some((name) => name?.toLowerCase().includes(wanted));
}

function About({ found, range }: { found: UpcomingRuns; range: string }) {
  const t = useWords(upcomingWords);
  const locale = useLocale();
  const zone = useZone();
  const minutes = new Map<number, number>();
  for (const item of found.items) {
    const minute = Math.floor(Date.parse(item.at) / 60_000);
    minutes.set(minute, (minutes.get(minute) ?? 0) + (item.scopes ?? 1));
  }
  const [at, most] = [...minutes].reduce<[number, number]>((best, each) => (each[1] > best[1] ? each : best), [0, 0]);
  const clock = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone: zone });
  return (
    <>
      {t.about(`${found.total.toLocaleString(locale)}${found.truncated ? "+" : ""}`, range)}
      {most > 1 && ` · ${t.busiest(clock.format(at * 60_000), most)}`}
    </>
  );
}

function NoMatch({ onAll }: { onAll: () => void }) {
  const t = useWords(upcomingWords);
  return (
    <EmptyState title={t.noMatch}>
      <Button onClick={onAll}>{t.all}</Button>
    </EmptyState>
  );
}

const keyOf = (item: UpcomingRun) => item.run_id ?? `${item.schedule} ${item.at}`;
const kindOf = (item: UpcomingRun) => (item.run_id === null ? 0 : item.attempt ? 2 : 1);

function Table({ rows, old, asked, empty }: { rows: UpcomingRun[] | undefined; old: boolean; asked: string; empty: React.ReactNode }) {
  const t = useWords(upcomingWords);
  const [kinds] = useState(() => [() => t.planned, () => t.delayed, (item: UpcomingRun) => t.retry(item.attempt)]);
  const columns: Column<UpcomingRun>[] = [
    { id: "what", name: t.what, clip: true, width: "34%", cell: (item) => <What item={item} />, sortBy: (item) => item.schedule ?? item.job },
    { id: "in", name: t.in, number: true, width: "6.5rem", cell: (item) => <In item={item} />, sortBy: (item) => -Date.parse(item.at) },
    { id: "at", name: t.at, cell: (item) => <Time at={item.at} zone={item.zone} show="absolute" />, priority: "low", sortBy: (item) => Date.parse(item.at) },
    { id: "kind", name: t.kind, cell: (item) => <span className={kindOf(item) === 2 ? "upcoming-retry" : "quiet"}>{kinds[kindOf(item)]!(item)}</span>, sortBy: kindOf, priority: "low" },
    { id: "job", name: t.job, clip: true, width: "16%", cell: (item) => <Link to={`/jobs/${part(item.job)}`}>{item.job}</Link>, sortBy: (item) => item.job },
    { id: "queue", name: t.queue, cell: (item) => item.queue ?? <span className="quiet">–</span>, sortBy: (item) => item.queue, priority: "lowest" },
    { id: "scopes", name: t.scopes, number: true, cell: (item) => item.scopes ?? <span className="quiet">{t.manyScopes}</span>, sortBy: (item) => item.scopes, priority: "lowest" },
  ];
  return (
    <DataTable
      label={upcomingLabel(t)}
      columns={columns}
      rows={rows}
      rowKey={keyOf}
      to={(item) => (item.run_id ? `/runs/${item.run_id}` : `/schedules/${part(item.schedule ?? "")}`)}
      expected={8}
      old={old}
      asked={asked}
      empty={empty}
    />
  );
}

const upcomingLabel = (t: { at: string; what: string }) => `${t.what}, ${t.at}`;

function What({ item }: { item: UpcomingRun }) {
  const said = useSaid();
  const t = useWords(upcomingWords);
  return (
    <span className="upcoming-what">
      {item.schedule ? (
        <Link className="clip" to={`/schedules/${part(item.schedule)}`} title={item.schedule}>
          {item.schedule}
        </Link>
      ) : (
        <span className="clip">{item.job}</span>
      )}
      {item.run_id ? <RunLink id={item.run_id} /> : <span className="quiet clip" title={item.rule ?? undefined}>{item.rule && said(item.rule)}</span>}
      {item.more > 0 && <span className="quiet">{t.more(item.more)}</span>}
    </span>
  );
}

function In({ item }: { item: UpcomingRun }) {
  const t = useWords(upcomingWords);
  const now = useNow();
  return Date.parse(item.at) < now - 5_000 ? <Badge tone="warn">{t.late}</Badge> : <Countdown to={item.at} />;
}

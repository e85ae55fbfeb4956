/** Overview page: current load, problems, next runs and history. */
import { useGet } from "../../api/hooks";
import type { Overview } from "../../api/schema";
import { useWords } from "../../i18n";
import { Card, EmptyState, PageHeader, ProblemNotice } from "../../ui";
import { AttentionCard } from "./AttentionCard";
import { NextRunsCard } from "./NextRunsCard";
import { History, RangeSwitch, Throughput, usePast } from "./History";
import { OverviewTiles } from "./OverviewTiles";
import "./overview.css";
import { TopErrorsCard } from "./TopErrorsCard";
import { overviewWords, viewName } from "./words";

/** The server caches its answer for this long. */
const FRESH = 250;

export function OverviewPage() {
  const t = useWords(overviewWords);
  const { name } = useWords(viewName);
  const overview = useGet<Overview>("runs", "/overview", {}, { rest: FRESH, every: 10_000 });
  const past = usePast();
  const found = overview.data;
  if (found && untouched(found)) {
    return (
      <>
        <PageHeader title={name} />
        <Card bare>
          <EmptyState title={t.emptyTitle} command={["rota dev", "rota worker MODULE:APP"]}>
            {t.empty}
          </EmptyState>
        </Card>
      </>
    );
  }
  if (!found && overview.error) {
    return (
      <>
        <PageHeader title={name} />
        <ProblemNotice problem={overview.error} onRetry={() => void overview.refetch()} />
      </>
    );
  }
  return (
    <>
      <PageHeader title={name} actions={<RangeSwitch />} />
      {overview.error && <ProblemNotice problem={overview.error} onRetry={() => void overview.refetch()} />}
      <OverviewTiles overview={found} />
      {past.problem && !overview.error && <ProblemNotice problem={past.problem} onRetry={past.again} />}
      <div className="overview-columns">
        <div className="overview-column">
          <AttentionCard overview={found} />
          <Throughput past={past} />
        </div>
        <div className="overview-column">
          <NextRunsCard fires={found?.next_fires} />
          <TopErrorsCard />
        </div>
      </div>
      <History past={past} />
    </>
  );
}

const none = (counts: Record<string, number>) => Object.values(counts).every((count) => !count);

/** Return whether the database was never used. */
function untouched({ live, last_day, schedules, workers, attention_count }: Overview): boolean {
  const { running, cancelling, queued, scheduled, waiting } = live;
  return (
    none({ running, cancelling, queued, scheduled, waiting, attention_count, alive: workers.alive, stale: workers.stale }) &&
    none(schedules) &&
    none(last_day.runs)
  );
}

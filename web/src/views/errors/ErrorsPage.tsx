/** Errors page: failed runs in error groups. */
import { useState } from "react";
import type { Page } from "../../api/client";
import { useGet } from "../../api/hooks";
import type { ErrorGroup, ErrorGroups } from "../../api/schema";
import { useWords } from "../../i18n";
import { useParameter } from "../../router";
import { Button, Card, EmptyState, PageHeader, ProblemNotice, shapeOf, useNow } from "../../ui";
import { BulkDialog } from "../runs/list/BulkDialog";
import { GroupTable } from "./GroupTable";
import "./errors.css";
import { keyOf, tokensOf } from "./groups";
import { errorsWords, viewName } from "./words";

const HOUR = 3_600_000;
const RANGES = { "1h": HOUR, "24h": 24 * HOUR, "7d": 7 * 24 * HOUR, "30d": 30 * 24 * HOUR };
type Range = keyof typeof RANGES;
const LONGER: Partial<Record<Range, Range>> = { "1h": "24h", "24h": "7d", "7d": "30d" };
const USUAL: Range = "24h";
const MOST = 200;

export function ErrorsPage({ params }: { params: Record<string, string> }) {
  const t = useWords(errorsWords);
  const { name } = useWords(viewName);
  const [chosen, choose] = useParameter("range");
  const [job, chooseJob] = useParameter("job");
  const [opened, open] = useParameter("open");
  const [retrying, setRetrying] = useState<ErrorGroup | null>(null);
  const range: Range = chosen !== null && chosen in RANGES ? (chosen as Range) : USUAL;
  // Round to the minute, so that the query key stays the same.
  const since = Math.floor(useNow() / 60_000) * 60_000 - RANGES[range];
  const question = { since: new Date(since).toISOString(), job, limit: MOST };
  const groups = useGet<ErrorGroups>("runs", "/error-groups", question, { keep: true, rest: 250, every: 30_000 });
  const items = groups.data?.items;
  const runs = items?.reduce((total, group) => total + group.count, 0) ?? 0;
  const shown = opened ?? items?.filter((group) => group.fingerprint === params.id).map(keyOf)[0] ?? null;
  const longer = LONGER[range];
  return (
    <>
      <PageHeader
        title={name}
        about={items?.length ? t.about(items.length, runs) : "\u00a0"}
        actions={<Filters range={range} onRange={(next) => choose(next === USUAL ? null : next)} job={job} onJob={chooseJob} />}
      />
      {groups.error && <ProblemNotice problem={groups.error} onRetry={() => void groups.refetch()} />}
      {(groups.data?.truncated || groups.data?.next_cursor) && <p className="notice tone-warn">{t.truncated}</p>}
      {(items || !groups.error) && <Card bare>
        {items && !items.length ? (
          <div className="errors-calm">
            <svg className="tone-good" viewBox="0 0 12 12" aria-hidden="true">
              <path d={shapeOf("succeeded")} />
            </svg>
            <EmptyState title={t.calm}>{job ? t.calmJob(job, t[range]) : t.calmAbout(t[range])}</EmptyState>
            <div className="row">
              {longer && <Button onClick={() => choose(longer)}>{t.longer(t[longer])}</Button>}
              {job && <Button onClick={() => chooseJob(null)}>{t.allJobs}</Button>}
            </div>
          </div>
        ) : (
          <GroupTable found={groups.data} opened={shown} onOpen={open} onRetry={setRetrying} />
        )}
      </Card>}
      {retrying && <BulkDialog action="retry" tokens={tokensOf(retrying)} onClose={() => setRetrying(null)} onDone={() => undefined} />}
    </>
  );
}

interface FiltersProps {
  range: Range;
  onRange: (range: Range) => void;
  job: string | null;
  onJob: (job: string | null) => void;
}

function Filters({ range, onRange, job, onJob }: FiltersProps) {
  const t = useWords(errorsWords);
  const jobs = useGet<Page<{ name: string }>>(null, "/jobs", { limit: 500 });
  const names = new Set([...(jobs.data?.items.map((each) => each.name) ?? []), ...(job ? [job] : [])]);
  return (
    <>
      <select className="input errors-job" aria-label={t.job} value={job ?? ""} onChange={(event) => onJob(event.target.value || null)}>
        <option value="">{t.allJobs}</option>
        {[...names].sort().map((each) => (
          <option key={each}>{each}</option>
        ))}
      </select>
      <div className="ranges" role="group" aria-label={t.range}>
        {(Object.keys(RANGES) as Range[]).map((each) => (
          <button key={each} type="button" aria-pressed={each === range} onClick={() => onRange(each)}>
            {t[each]}
          </button>
        ))}
      </div>
    </>
  );
}

/** Errors page: failed runs in error groups. */
import { useState } from "react";
import { api, type Page } from "../../api/client";
import { useGet } from "../../api/hooks";
import { problemOf } from "../../api/problem";
import type { ErrorGroup, ErrorGroups } from "../../api/schema";
import { useWords } from "../../i18n";
import { useParameter } from "../../router";
import { Button, Card, EmptyState, PageHeader, Pagination, ProblemNotice, SearchBox, shapeOf, useNow, useRested, useToasts } from "../../ui";
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
const PAGE = 50;

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
  const [text, setText] = useParameter("q");
  const [sort, setSort] = useParameter("sort");
  const [apart, setApart] = useParameter("by");
  const search = useRested(text ?? "", 300).trim();
  const question = { since: new Date(since).toISOString(), job, limit: PAGE, all_jobs: apart !== "job", sort: sort === "newest" ? "newest" : "count", search: search || null };
  const groups = useGet<ErrorGroups>("runs", "/error-groups", question, { keep: true, rest: 250, every: 30_000 });
  const more = useMore(groups.data, question);
  const items = more.items;
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
      {groups.data?.truncated && <p className="notice tone-warn">{t.truncated}</p>}
      <div className="errors-tools">
        <SearchBox label={t.search} placeholder={t.search} value={text ?? ""} onChange={(next) => setText(next || null)} shortcut="/" />
        <Switch label={t.sort} choices={{ count: t.largest, newest: t.newestFirst }} chosen={sort === "newest" ? "newest" : "count"} onChoose={(next) => setSort(next === "count" ? null : next)} />
        <Switch label={t.group} choices={{ error: t.acrossJobs, job: t.perJob }} chosen={apart === "job" ? "job" : "error"} onChoose={(next) => setApart(next === "error" ? null : next)} />
      </div>
      {(items || !groups.error) && <Card bare>
        {items && !items.length && search ? (
          <EmptyState title={t.noMatch}>
            <Button onClick={() => setText(null)}>{t.clear}</Button>
          </EmptyState>
        ) : items && !items.length ? (
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
          <>
            <GroupTable found={groups.data && { ...groups.data, items: items! }} opened={shown} onOpen={open} onRetry={setRetrying} />
            {items && <Pagination count={items.length} hasMore={more.hasMore} loading={more.loading} onMore={more.more} />}
          </>
        )}
      </Card>}
      {retrying && <BulkDialog action="retry" tokens={tokensOf(retrying)} onClose={() => setRetrying(null)} onDone={() => undefined} />}
    </>
  );
}

/** Add further pages to the first one, which is kept up to date. Another question begins anew. */
function useMore(first: ErrorGroups | undefined, question: Record<string, string | number | boolean | null>) {
  const asked = JSON.stringify(question);
  const toasts = useToasts();
  const [further, setFurther] = useState<{ asked: string; items: ErrorGroup[]; next: string | null } | null>(null);
  const [loading, setLoading] = useState(false);
  const own = further?.asked === asked ? further : null;
  const next = own ? own.next : (first?.next_cursor ?? null);
  const known = new Set(first?.items.map(keyOf));
  const more = async () => {
    setLoading(true);
    try {
      const page = await api.get<ErrorGroups>("/error-groups", { ...question, cursor: next });
      setFurther({ asked, items: [...(own?.items ?? []), ...page.items], next: page.next_cursor });
    } catch (error) {
      toasts.complain(problemOf(error));
    } finally {
      setLoading(false);
    }
  };
  const items = first && [...first.items, ...(own?.items ?? []).filter((group) => !known.has(keyOf(group)))];
  return { items, hasMore: next !== null, loading, more: () => void more() };
}

function Switch<T extends string>({ label, choices, chosen, onChoose }: { label: string; choices: Record<T, string>; chosen: T; onChoose: (choice: T) => void }) {
  return (
    <div className="ranges" role="group" aria-label={label}>
      {(Object.keys(choices) as T[]).map((each) => (
        <button key={each} type="button" aria-pressed={each === chosen} onClick={() => onChoose(each)}>
          {choices[each]}
        </button>
      ))}
    </div>
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

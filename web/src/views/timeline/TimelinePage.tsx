/** Timeline page: attempts over time, overlaps and planned runs. */
import { useMemo, useState } from "react";
import { useGet } from "../../api/hooks";
import type { Timeline } from "../../api/schema";
import { useWords } from "../../i18n";
import { common } from "../../i18n/common";
import { useParameter } from "../../router";
import { Button, Card, EmptyState, PageHeader, ProblemNotice, shapeOf, toneOf, useAbsolute, type Shown } from "../../ui";
import { AttemptTable } from "./AttemptTable";
import { TimelineChart } from "./Chart";
import { MISSED } from "./LaneDrawing";
import { rowsOf } from "./lanes";
import { BY, type By } from "./links";
import { asked, useTimeRange, type TimeRange } from "./range";
import "./timeline.css";
import { timelineWords, viewName } from "./words";

const MOST = 5_000;
/** Above this count an answer is large, so changes are requested less often. */
const MANY = 1_000;
const SELDOM = 4_000;
const SPANS = [900, 3_600, 21_600, 86_400] as const;

export function TimelinePage() {
  const t = useWords(timelineWords);
  const { name } = useWords(viewName);
  const [chosen, choose] = useParameter("by");
  const [shown, show] = useParameter("as");
  const by: By = BY.find((each) => each === chosen) ?? "schedule";
  const [still, setStill] = useState(false);
  const [many, setMany] = useState(false);
  const range = useTimeRange(still);
  const question = { ...asked(range.from, range.span), by, limit: MOST };
  const timeline = useGet<Timeline>("runs", "/timeline", question, { keep: true, rest: many ? SELDOM : 0, every: 10_000 });
  const found = timeline.data?.by === by ? timeline.data : undefined;
  const rows = useMemo(() => found && rowsOf(found), [found]);
  const count = rows?.reduce((total, row) => total + row.bars.length, 0) ?? 0;
  if (count > MANY !== many && !timeline.isPlaceholderData && rows) setMany(count > MANY);
  const table = shown === "table";
  const empty = rows && !rows.some((row) => row.bars.length || row.coming.length || row.blanks.length);
  return (
    <>
      <PageHeader
        title={name}
        actions={
          <>
            <Switch label={t.by} choices={BY} names={t} chosen={by} onChoose={(next) => choose(next === "schedule" ? null : next)} />
            <Button icon={table ? "chart" : "table"} label={table ? t.asChart : t.asTable} onClick={() => show(table ? null : "table")} />
          </>
        }
      />
      {timeline.error && <ProblemNotice problem={timeline.error} onRetry={() => void timeline.refetch()} />}
      <Card bare>
        <Controls range={range} />
        {found?.truncated && <Truncated complete={found.complete_from} />}
        {!rows ? (
          <div className="timeline-waiting" aria-busy={!timeline.error}>
            {!timeline.error && [62, 38, 51, 70].map((width) => <span key={width} className="skeleton" style={{ width: `${width}%` }} />)}
          </div>
        ) : empty ? (
          <>
            <EmptyState title={t.emptyTitle} command={by === "schedule" ? undefined : "rota run enqueue hello"}>
              {by === "schedule" ? t.emptyBySchedule : t.empty}
            </EmptyState>
            {by === "schedule" && (
              <div className="timeline-instead">
                <Button onClick={() => choose("job")}>{t.byJob}</Button>
              </div>
            )}
          </>
        ) : table ? (
          <AttemptTable by={by} rows={rows} range={range} />
        ) : (
          <>
            <TimelineChart by={by} rows={rows} complete={found?.complete_from ? Date.parse(found.complete_from) : null} range={range} still={still} onPoint={setStill} />
            <Legend />
          </>
        )}
      </Card>
    </>
  );
}

function Truncated({ complete }: { complete: string | null }) {
  const t = useWords(timelineWords);
  const absolute = useAbsolute();
  return <p className="timeline-truncated tone-warn">{complete ? t.completeFrom(absolute(complete)) : t.truncated}</p>;
}

interface SwitchProps<T extends string> {
  label: string;
  choices: readonly T[];
  names: Record<T, string>;
  chosen: T | null;
  onChoose: (choice: T) => void;
}

function Switch<T extends string>({ label, choices, names, chosen, onChoose }: SwitchProps<T>) {
  return (
    <div className="ranges" role="group" aria-label={label}>
      {choices.map((each) => (
        <button key={each} type="button" aria-pressed={each === chosen} onClick={() => onChoose(each)}>
          {names[each]}
        </button>
      ))}
    </div>
  );
}

function Controls({ range }: { range: TimeRange }) {
  const t = useWords(timelineWords);
  const seconds = Math.round(range.span / 1_000);
  const spans = SPANS.map(String) as `${(typeof SPANS)[number]}`[];
  return (
    <div className="timeline-controls">
      <Switch
        label={t.span}
        choices={spans}
        names={t}
        chosen={spans.find((each) => Number(each) === seconds) ?? null}
        onChoose={(next) => range.show(Number(next) * 1_000)}
      />
      <div className="row">
        <Button small look="plain" icon="plus" label={t.zoomIn} onClick={() => range.zoom(0.5)} />
        <Button small look="plain" label={t.zoomOut} onClick={() => range.zoom(2)} className="icon">
          <svg viewBox="0 0 16 16" fill="none" stroke="currentColor" strokeWidth="1.4" strokeLinecap="round" aria-hidden="true">
            <path d="M3 8h10" />
          </svg>
        </Button>
        <Button small look="plain" label={t.earlier} onClick={() => range.pan(-0.5)} className="icon timeline-earlier">
          <svg viewBox="0 0 16 16" fill="none" stroke="currentColor" strokeWidth="1.4" strokeLinecap="round" strokeLinejoin="round" aria-hidden="true">
            <path d="M10 4 6 8l4 4" />
          </svg>
        </Button>
        <Button small look="plain" icon="right" label={t.later} onClick={() => range.pan(0.5)} />
        <Button small onClick={range.follow} disabled={range.following} title={range.following ? t.following : undefined}>
          {t.toNow}
        </Button>
      </div>
      <span className="timeline-how quiet">{t.wheel}</span>
    </div>
  );
}

const SHAPES: Shown[] = ["succeeded", "failed", "timed_out", "lost", "cancelled", "running"];

function Legend() {
  const t = useWords(timelineWords);
  const states = useWords(common);
  return (
    <ul className="timeline-legend" aria-label={t.legend}>
      {SHAPES.map((state) => (
        <li key={state} className={`tone-${toneOf(state)}`}>
          <svg viewBox="0 0 12 12" aria-hidden="true">
            <path d={shapeOf(state)} fillRule="evenodd" />
          </svg>
          {states[state]}
        </li>
      ))}
      <li className="tone-idle">
        <svg viewBox="0 0 12 12" aria-hidden="true" className="hollow">
          <circle cx="6" cy="6" r="4" />
        </svg>
        {t.coming}
      </li>
      <li className="tone-idle">
        <svg viewBox="0 0 12 12" aria-hidden="true">
          <path d={shapeOf("skipped")} fillRule="evenodd" />
        </svg>
        {states.skipped}
      </li>
      <li className="tone-bad">
        <svg viewBox="0 0 12 12" aria-hidden="true">
          <path d={MISSED} fillRule="evenodd" />
        </svg>
        {t.missed}
      </li>
      <li className="tone-warn">
        <svg viewBox="0 0 12 12" aria-hidden="true">
          <rect x="0" y="5" width="12" height="2" />
        </svg>
        {t.overlaps}
      </li>
    </ul>
  );
}

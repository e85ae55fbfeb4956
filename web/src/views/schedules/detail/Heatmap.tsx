/** Heatmap of outcomes: a cell per day, or per hour for frequent schedules. */
import { useMemo, useState, type CSSProperties } from "react";
import type { Page } from "../../../api/client";
import { useGet } from "../../../api/hooks";
import type { Fire, Occurrence } from "../../../api/schema";
import { useLocale, useWords } from "../../../i18n";
import { common } from "../../../i18n/common";
import { Button, Card, ProblemNotice, shapeOf, useZone, type Shown, type Tone } from "../../../ui";
import { cellsOf, OUTCOMES, type Cell, type Outcome } from "./cells";
import { detailWords } from "./words";
import { schedulePath } from "../links";
import type { Schedule } from "../types";

const DAY = 86_400_000;
const MOST = 10_000;
const MOST_DAYS = 91;
const TONES: Record<Outcome, Tone> = { good: "good", bad: "bad", missed: "warn", skipped: "idle", covered: "idle", paused: "idle", pruned: "idle", other: "idle", live: "busy" };
const SHAPES: Record<Outcome, Shown> = { good: "succeeded", bad: "failed", missed: "expired", skipped: "skipped", covered: "queued", paused: "waiting", pruned: "cancelled", other: "cancelled", live: "running" };

/** Return the share of the worst outcome: one failed tenant of eight must not look like eight. */
const shareOf = (cell: Cell) => (cell.worst ? cell.counts[cell.worst]! / cell.total : 1);

/** Return the number of days whose plan times fit into one answer. */
export function reach(fires: Fire[] | undefined, lanes: number): number {
  const last = fires?.[fires.length - 1];
  if (!fires || fires.length < 2 || !last) return MOST_DAYS;
  const gap = (Date.parse(last.plan_time) - Date.parse(fires[0]!.plan_time)) / (fires.length - 1);
  return Math.min(MOST_DAYS, ((MOST * 0.9) / lanes) * (gap / DAY));
}

export function Heatmap({ schedule, fires }: { schedule: Schedule; fires: Fire[] | undefined }) {
  const t = useWords(detailWords);
  const both = useWords(common);
  const zone = useZone(schedule.timezone);
  const lanes = Array.isArray(schedule.definition.scopes) ? Math.max(1, schedule.definition.scopes.length) : 1;
  const far = reach(fires, lanes);
  const hourly = far < 4;
  const days = hourly ? Math.min(2, far) : Math.floor(far);
  // Round to the minute, so that the query key stays the same.
  const [now] = useState(() => Math.floor(Date.now() / 60_000) * 60_000);
  const from = now - days * DAY;
  const found = useGet<Page<Occurrence>>("schedules", `${schedulePath(schedule.name)}/occurrences`, { from: new Date(from).toISOString(), limit: MOST }, { enabled: !!fires, keep: true, rest: 5_000 });
  const [asTable, setAsTable] = useState(false);
  const items = found.data?.items;
  const cells = useMemo(() => (items ? cellsOf(items, from, Date.now(), zone, hourly) : null), [items, from, zone, hourly]);
  const title = hourly ? t.calendarHours(Math.max(1, Math.round((now - from) / 3_600_000))) : t.calendarOf(Math.max(1, Math.round((now - from) / DAY)));
  return (
    <Card title={title} actions={<Button look="plain" small icon={asTable ? "chart" : "table"} label={asTable ? both.asChart : both.asTable} onClick={() => setAsTable(!asTable)} />}>
      {found.error && !items && <ProblemNotice problem={found.error} />}
      {asTable && cells ? <CellTable cells={cells} label={title} hourly={hourly} /> : <Calendar cells={cells} hourly={hourly} label={title} />}
      {found.data?.next_cursor && <p className="quiet">{t.cut}</p>}
    </Card>
  );
}

function Calendar({ cells, hourly, label }: { cells: Cell[] | null; hourly: boolean; label: string }) {
  const t = useWords(detailWords);
  const locale = useLocale();
  const shown = useMemo(() => OUTCOMES.filter((outcome) => cells?.some((cell) => cell.counts[outcome])), [cells]);
  if (!cells) return <div className="schedules-calendar-box" data-hourly={hourly || undefined} aria-busy="true" />;
  const dayOf = (cell: Cell) => cell.key.slice(0, 10);
  const days = [...new Set(cells.map(dayOf))];
  const byKey = new Map(cells.map((cell) => [cell.key, cell]));
  const format = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short", timeZone: "UTC" });
  const short = (day: string) => format.format(new Date(`${day}T00:00Z`));
  const told = (cell: Cell) => OUTCOMES.filter((outcome) => cell.counts[outcome]).map((outcome) => `${cell.counts[outcome]!.toLocaleString()} ${t[outcome]}`).join(", ") || t.nothing;
  const draw = (cell: Cell | undefined, key: string) =>
    cell ? (
      <i key={key} className={`schedules-cell tone-${cell.worst ? TONES[cell.worst] : "idle"}`} data-outcome={cell.worst ?? "none"} data-most={shareOf(cell) >= 0.5 ? "" : undefined} data-part={shareOf(cell) < 1 ? "" : undefined} style={{ "--share": `${Math.max(20, Math.round(shareOf(cell) * 100))}%` } as CSSProperties} title={`${hourly ? `${cell.key}:00` : short(cell.key)}: ${told(cell)}`}>
        {cell.worst && (
          <svg viewBox="0 0 12 12" aria-hidden="true">
            <path d={shapeOf(SHAPES[cell.worst])} fillRule="evenodd" />
          </svg>
        )}
      </i>
    ) : (
      <i key={key} className="schedules-cell none" />
    );
  const totals = shown.map((outcome) => `${cells.reduce((all, cell) => all + (cell.counts[outcome] ?? 0), 0).toLocaleString()} ${t[outcome]}`).join(", ");
  return (
    <div className="schedules-calendar-box" data-hourly={hourly || undefined}>
      <div className={hourly ? "schedules-calendar hourly" : "schedules-calendar"} role="img" tabIndex={0} aria-label={`${label}: ${totals || t.nothing}`}>
        {hourly
          ? days.map((day) => (
              <div key={day} className="schedules-week">
                <span className="quiet">{short(day)}</span>
                {Array.from({ length: 24 }, (_, hour) => `${day} ${String(hour).padStart(2, "0")}`).map((key) => draw(byKey.get(key), key))}
              </div>
            ))
          : [<Weekdays key="weekdays" />, ...weeksOf(days).map((week, index, weeks) => (
              <div key={week[0]!} className="schedules-week">
                <span className="quiet">{index === 0 || week[0]!.slice(5, 7) !== weeks[index - 1]![0]!.slice(5, 7) ? short(week[0]!).replace(/^\d+ | \d+$/, "") : ""}</span>
                {week.map((day) => draw(byKey.get(day), day))}
              </div>
            ))]}
      </div>
      <ul className="schedules-legend">
        {!shown.length && <li className="quiet">{t.noHistory}</li>}
        {shown.map((outcome) => (
          <li key={outcome} className={`tone-${TONES[outcome]}`}>
            <svg viewBox="0 0 12 12" aria-hidden="true">
              <path d={shapeOf(SHAPES[outcome])} fillRule="evenodd" />
            </svg>
            {t[outcome]}
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Names of the weekdays. 5 January 1970 was a Monday. */
function Weekdays() {
  const format = new Intl.DateTimeFormat(useLocale(), { weekday: "short", timeZone: "UTC" });
  return (
    <div className="schedules-week names quiet">
      <span />
      {Array.from({ length: 7 }, (_, day) => (
        <b key={day}>{day % 2 ? "" : format.format(new Date((4 + day) * DAY))}</b>
      ))}
    </div>
  );
}

/** Split days into weeks that begin on Monday; days before the first are empty. */
function weeksOf(days: string[]): string[][] {
  const weeks: string[][] = [];
  for (const day of days) {
    const weekday = (new Date(`${day}T00:00Z`).getUTCDay() + 6) % 7;
    if (!weeks.length || weekday === 0) weeks.push(weeks.length ? [] : Array.from({ length: weekday }, (_, back) => before(day, weekday - back)));
    weeks[weeks.length - 1]!.push(day);
  }
  return weeks;
}

const before = (day: string, days: number) => new Date(Date.parse(`${day}T00:00Z`) - days * DAY).toISOString().slice(0, 10);

function CellTable({ cells, label, hourly }: { cells: Cell[]; label: string; hourly: boolean }) {
  const t = useWords(detailWords);
  const shown = OUTCOMES.filter((outcome) => cells.some((cell) => cell.counts[outcome]));
  const filled = cells.filter((cell) => cell.total).reverse();
  if (!filled.length) return <p className="quiet">{t.noHistory}</p>;
  return (
    <div className="schedules-scroll" tabIndex={0}>
      <table className="table" aria-label={label}>
        <thead>
          <tr>
            <th scope="col">{hourly ? t.hour : t.day}</th>
            {shown.map((outcome) => (
              <th key={outcome} scope="col" className="number">
                {t[outcome]}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {filled.map((cell) => (
            <tr key={cell.key}>
              <th scope="row">{hourly ? `${cell.key}:00` : cell.key}</th>
              {shown.map((outcome) => (
                <td key={outcome} className="number">
                  {cell.counts[outcome] ?? "–"}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

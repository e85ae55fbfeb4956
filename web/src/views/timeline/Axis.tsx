/** Axis, grid lines and details popup of the timeline. */
import { useCallback, useMemo } from "react";
import { useLocale, useWords } from "../../i18n";
import { useSaid } from "../../i18n/said";
import { common } from "../../i18n/common";
import { duration, StateBadge, useAbsolute, useZone } from "../../ui";
import type { Item, Placed } from "./lanes";
import { ticks, type TimeRange } from "./range";
import { timelineWords } from "./words";

const DAY = 86_400_000;

export function Axis({ range: { from, to, now, span }, width }: { range: TimeRange; width: number }) {
  const t = useWords(timelineWords);
  const zone = useZone();
  const locale = useLocale();
  const { times, step } = ticks(from, to, Math.max(2, Math.floor(width / 84)), zone);
  const clock = useMemo(
    () => new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit", second: step < 60_000 ? "2-digit" : undefined, hourCycle: "h23", timeZone: zone }),
    [locale, zone, step],
  );
  const day = useMemo(() => new Intl.DateTimeFormat(locale, { day: "numeric", month: "short", timeZone: zone }), [locale, zone]);
  const told = (at: number) => (step >= DAY || /^00:00(:00)?$/.test(clock.format(at)) ? day.format(at) : clock.format(at));
  const left = (at: number) => ((at - from) / span) * width;
  return (
    <div className="timeline-axis" aria-hidden="true">
      <span className="timeline-day">{day.format(from)}</span>
      <div>
        {times
          .filter((at) => left(at) > 18 && left(at) < width - 18 && Math.abs(left(at) - left(now)) > 34)
          .map((at) => (
            <span key={at} style={{ left: left(at) }}>
              {told(at)}
            </span>
          ))}
        {now >= from && now <= to && (
          <b style={{ left: Math.min(left(now), width - 16) }}>{t.now}</b>
        )}
      </div>
    </div>
  );
}

export function Grid({ lanes, range: { from, to, span }, width, height }: { lanes: Placed[]; range: TimeRange; width: number; height: number }) {
  const zone = useZone();
  const { times } = ticks(from, to, Math.max(2, Math.floor(width / 84)), zone);
  return (
    <g className="timeline-grid">
      {times.map((at) => (
        <line key={at} x1={((at - from) / span) * width} x2={((at - from) / span) * width} y1={0} y2={height} />
      ))}
      {lanes.slice(1).map((row) => (
        <line key={row.name} className="between" x1={0} x2={width} y1={row.top} y2={row.top} />
      ))}
    </g>
  );
}

export function Details({ item, left, width, top, now }: { item: Item; left: number; width: number; top: number; now: number }) {
  const t = useWords(timelineWords);
  const said = useSaid();
  const states = useWords(common);
  const absolute = useAbsolute();
  const place = useCallback(() => (left > width / 2 ? { right: Math.max(0, width - left - 8), top } : { left: Math.max(0, left - 8), top }), [left, width, top]);
  if ("blank" in item) {
    const { gap } = item.blank;
    const kind = gap.kind === "missed" ? t.missed : states.skipped;
    return (
      <div className="timeline-details" style={place()} role="status">
        <strong className="clip">{item.row.name}</strong>
        <span>{gap.count > 1 ? t.blanks(gap.count, kind) : t.blank(kind)}</span>
        <span>
          {absolute(gap.from)}
          {gap.to !== gap.from && ` – ${absolute(gap.to)}`}
        </span>
        {gap.reason && <span className="quiet hostile">{said(gap.reason)}</span>}
      </div>
    );
  }
  if (!("bar" in item)) {
    return (
      <div className="timeline-details" style={place()} role="status">
        <strong className="clip">{item.row.name}</strong>
        <span>
          {t.comes} {absolute(item.at)}
        </span>
      </div>
    );
  }
  const { attempt, state, start, end } = item.bar;
  const took = duration(Math.min(end, now) - start);
  return (
    <div className="timeline-details" style={place()}>
      <div className="row spread">
        <strong className="clip">{attempt.job}</strong>
        <StateBadge state={state} />
      </div>
      <span>{absolute(start)}</span>
      <span>
        {took} · {t.attempt(attempt.no)}
      </span>
      {attempt.worker_id && <span className="quiet clip">{attempt.worker_id}</span>}
      <span className="unseen" role="status">
        {t.walked(attempt.job, states[state], absolute(start), took)}
      </span>
    </div>
  );
}


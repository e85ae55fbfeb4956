/** Time range of the timeline. It follows the current time until somebody moves it. The address holds it. */
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { navigate, usePlace, withSearch } from "../../router";
import { useNow } from "../../ui";

const SECOND = 1_000;
const USUAL = 3_600 * SECOND;
const SHORTEST = 10 * SECOND;
const LONGEST = 31 * 86_400 * SECOND;
/** Share of the range that lies in the future. */
const AHEAD = 0.15;
const REST = 250;

interface Chosen {
  span: number;
  /** End of the range; `null` follows the current time. */
  to: number | null;
}

export interface TimeRange {
  from: number;
  to: number;
  span: number;
  now: number;
  following: boolean;
  /** `at` is the fixed point, as a share of the width. */
  zoom: (factor: number, at?: number) => void;
  /** Move by this share of the range. */
  pan: (share: number) => void;
  show: (span: number) => void;
  follow: () => void;
}

const clamped = (span: number) => Math.min(LONGEST, Math.max(SHORTEST, span));

function read(search: URLSearchParams): Chosen {
  const span = Number(search.get("span") ?? NaN) * SECOND;
  const to = Date.parse(search.get("to") ?? "");
  return { span: Number.isFinite(span) && span > 0 ? clamped(span) : USUAL, to: Number.isNaN(to) ? null : to };
}

const written = ({ span, to }: Chosen) => ({
  span: span === USUAL ? null : String(Math.round(span / SECOND)),
  to: to === null ? null : new Date(Math.round(to / SECOND) * SECOND).toISOString().replace(".000Z", "Z"),
});

/** Return the time range. `still` freezes it while the pointer is over an item. */
export function useTimeRange(still: boolean): TimeRange {
  const { search, path } = usePlace();
  const [chosen, setChosen] = useState(() => read(search));
  const own = useRef(JSON.stringify(written(chosen)));

  useEffect(() => {
    const there = read(search);
    const told = JSON.stringify(written(there));
    if (told === own.current) return;
    own.current = told; // the user went back, or followed a link
    setChosen(there);
  }, [search]);
  useEffect(() => {
    const told = written(chosen);
    if (JSON.stringify(told) === own.current) return;
    const waiting = window.setTimeout(() => {
      own.current = JSON.stringify(told);
      const after = new URLSearchParams(search);
      for (const [name, value] of Object.entries(told)) {
        if (value === null) after.delete(name);
        else after.set(name, value);
      }
      navigate(withSearch(path, after), { replace: true });
    }, REST);
    return () => window.clearTimeout(waiting);
  }, [chosen, search, path]);

  const now = useNow();
  const held = useRef(now);
  if (!still) held.current = now;
  const { span } = chosen;
  const to = chosen.to ?? held.current + span * AHEAD;
  const latest = useRef({ span, to });
  latest.current = { span, to };

  const zoom = useCallback((factor: number, at?: number) => {
    setChosen((before) => {
      const next = clamped(before.span * factor);
      if (before.to === null && at === undefined) return { span: next, to: null };
      const share = at ?? 0.5;
      const anchor = latest.current.to - before.span * (1 - share);
      return { span: next, to: anchor + next * (1 - share) };
    });
  }, []);
  const pan = useCallback((share: number) => {
    setChosen((before) => ({ span: before.span, to: Math.min((before.to ?? latest.current.to) + before.span * share, Date.now() + LONGEST) }));
  }, []);
  const show = useCallback((next: number) => setChosen((before) => ({ span: next, to: before.to })), []);
  const follow = useCallback(() => setChosen((before) => ({ span: before.span, to: null })), []);
  const following = chosen.to === null;
  return useMemo(
    () => ({ from: to - span, to, span, now, following, zoom, pan, show, follow }),
    [to, span, now, following, zoom, pan, show, follow],
  );
}

/** Return the range to request: half a span more on each side, rounded, so that small moves need no new request. */
export function asked(from: number, span: number): { from: string; to: string } {
  const step = Math.max(SECOND, span / 4);
  const first = Math.floor((from - span / 2) / step) * step;
  return { from: new Date(Math.max(0, first)).toISOString(), to: new Date(first + span * 2 + step).toISOString() };
}

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800].map((each) => each * SECOND);

/** Return the ticks of the axis, on whole hours and days of the shown zone. */
export function ticks(from: number, to: number, most: number, zone: string | undefined): { times: number[]; step: number } {
  const step = STEPS.find((each) => (to - from) / each <= most) ?? STEPS[STEPS.length - 1]!;
  const offset = offsetOf(from, zone);
  const times: number[] = [];
  for (let time = Math.ceil((from + offset) / step) * step - offset; time <= to; time += step) times.push(time);
  return { times, step };
}

function offsetOf(at: number, zone: string | undefined): number {
  const parts = new Intl.DateTimeFormat("en-US", {
    timeZone: zone, hourCycle: "h23", year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric",
  }).formatToParts(at);
  const get = (type: string) => Number(parts.find((one) => one.type === type)?.value);
  const wall = Date.UTC(get("year"), get("month") - 1, get("day"), get("hour"), get("minute"), get("second"));
  return Math.round((wall - at) / 60_000) * 60_000;
}

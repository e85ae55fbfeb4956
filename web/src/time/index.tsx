/** Times for people: relative times, time zones and durations. */
import { useEffect, useState, useSyncExternalStore } from "react";
import { useLocale, useWords } from "../i18n";
import { common } from "../i18n/common";
import { usePreferences } from "../preferences";

const listeners = new Set<() => void>();
let second = Math.floor(Date.now() / 1000);
let timer: number | undefined;

function onSecond(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= window.setInterval(() => {
    second = Math.floor(Date.now() / 1000);
    listeners.forEach((each) => each());
  }, 1000);
  return () => {
    listeners.delete(listener);
    if (!listeners.size) {
      window.clearInterval(timer);
      timer = undefined;
    }
  };
}

/** Return the current time, and render again every second. */
export function useNow(): number {
  return useSyncExternalStore(onSecond, () => second) * 1000;
}

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1_000],
];

export function relative(at: number, now: number, locale: string, justNow: string): string {
  const away = at - now;
  for (const [unit, size] of UNITS) {
    if (Math.abs(away) >= size) {
      // Use en-US for the short "5s ago": other English locales write "5 sec ago".
      return new Intl.RelativeTimeFormat(locale.startsWith("en") ? "en-US" : locale, { style: "narrow", numeric: "always" }).format(Math.trunc(away / size), unit);
    }
  }
  return justNow;
}

/** "850ms", "1.2s", "3m 05s", "2h 10m", "4d 3h". */
export function duration(milliseconds: number): string {
  const value = Math.max(0, milliseconds);
  if (value < 1) return "<1ms";
  if (value < 1_000) return `${Math.round(value)}ms`;
  if (value < 10_000) return `${(Math.floor(value / 100) / 10).toFixed(1)}s`;
  if (value < 60_000) return `${Math.floor(value / 1_000)}s`;
  const seconds = Math.floor(value / 1_000);
  const two = (count: number) => String(count).padStart(2, "0");
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m ${two(seconds % 60)}s`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)}h ${two(Math.floor((seconds % 3_600) / 60))}m`;
  return `${Math.floor(seconds / 86_400)}d ${Math.floor((seconds % 86_400) / 3_600)}h`;
}

/** Return the shown time zone. `own` is the zone of the schedule, if there is one. */
export function useZone(own?: string | null): string | undefined {
  const { zone } = usePreferences();
  if (zone === "utc") return "UTC";
  return zone === "schedule" && own ? own : undefined;
}

export function useAbsolute(own?: string | null): (at: string | number | Date) => string {
  const zone = useZone(own);
  const locale = useLocale();
  return (at) =>
    new Intl.DateTimeFormat(locale, {
      year: "numeric",
      month: "short",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
      hourCycle: "h23",
      timeZone: zone,
      timeZoneName: "short",
    }).format(new Date(at));
}

interface TimeProps {
  at: string | null | undefined;
  /** Zone of the schedule, for the setting "schedule". */
  zone?: string | null;
  /** `both` shows the absolute time, then the relative one. */
  show?: "relative" | "absolute" | "both";
}

/** Relative time. The title holds the absolute time with its zone. */
export function Time({ at, zone, show = "relative" }: TimeProps) {
  const now = useNow();
  const locale = useLocale();
  const t = useWords(common);
  const absolute = useAbsolute(zone);
  if (!at) return <span className="quiet">–</span>;
  const full = absolute(at);
  const ago = relative(Date.parse(at), now, locale, t.now);
  if (show === "relative") {
    return (
      <time dateTime={at} title={full}>
        {ago}
      </time>
    );
  }
  return (
    <time dateTime={at}>
      {full}
      {show === "both" && <span className="quiet"> · {ago}</span>}
    </time>
  );
}

/** Duration from `from` to `to`. Without `to`, it counts up. */
export function Duration({ from, to }: { from: string | null | undefined; to?: string | null }) {
  if (!from) return <span className="quiet">–</span>;
  return to ? <span>{duration(Date.parse(to) - Date.parse(from))}</span> : <Going from={Date.parse(from)} />;
}

function Going({ from }: { from: number }) {
  const [offset] = useState(() => Math.min(0, Date.now() - from)); // correct a server clock that is ahead
  const now = useNow();
  return <span>{duration(now - from - offset)}</span>;
}

/** Countdown in seconds. */
export function Countdown({ to }: { to: string }) {
  const now = useNow();
  const t = useWords(common);
  const left = Date.parse(to) - now;
  return <span>{left > 0 ? duration(Math.ceil(left / 1000) * 1000).replace(".0s", "s") : t.now}</span>;
}

/** Return a value after it has not changed for a while, so that typing does not send a request per key. */
export function useRested<T>(value: T, milliseconds = 250): T {
  const [rested, setRested] = useState(value);
  useEffect(() => {
    const waiting = window.setTimeout(() => setRested(value), milliseconds);
    return () => window.clearTimeout(waiting);
  }, [value, milliseconds]);
  return rested;
}

/** Times as people read them: how long ago, in which zone, how long it took. */
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

/** Now, to the second; whoever asks is drawn again when it changes. */
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
      // "5s ago" fits where "5 sec ago", as other kinds of English have it, does not.
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

/** The zone that is shown; `own` is that of the schedule, if it is about one. */
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
  /** That of the schedule, for "schedule" in the zone switch. */
  zone?: string | null;
  /** `both`: the absolute time with the relative one behind it. */
  show?: "relative" | "absolute" | "both";
}

/** How long ago or until; the absolute time with its zone is its title. */
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

/** From `from` to `to`; without a `to`, it goes on. */
export function Duration({ from, to }: { from: string | null | undefined; to?: string | null }) {
  if (!from) return <span className="quiet">–</span>;
  return to ? <span>{duration(Date.parse(to) - Date.parse(from))}</span> : <Going from={Date.parse(from)} />;
}

function Going({ from }: { from: number }) {
  const [offset] = useState(() => Math.min(0, Date.now() - from)); // a server whose clock is ahead
  const now = useNow();
  return <span>{duration(now - from - offset)}</span>;
}

/** Until then, second by second. */
export function Countdown({ to }: { to: string }) {
  const now = useNow();
  const t = useWords(common);
  const left = Date.parse(to) - now;
  return <span>{left > 0 ? duration(Math.ceil(left / 1000) * 1000) : t.now}</span>;
}

/** A value that follows another after it has rested: what is typed, before it is asked. */
export function useRested<T>(value: T, milliseconds = 250): T {
  const [rested, setRested] = useState(value);
  useEffect(() => {
    const waiting = window.setTimeout(() => setRested(value), milliseconds);
    return () => window.clearTimeout(waiting);
  }, [value, milliseconds]);
  return rested;
}

/** Layout of attempts as bars: which of them overlap, and the row of each; and of plan times that did not run. */
import type { Gap, Lane, Timeline, TimelineAttempt } from "../../api/schema";
import type { Shown } from "../../ui";

export interface Bar {
  key: string;
  attempt: TimelineAttempt;
  state: Shown;
  start: number;
  /** Infinity while it runs. */
  end: number;
  track: number;
}

/** Plan times that did not run. */
export interface Blank {
  key: string;
  gap: Gap;
  from: number;
  to: number;
}

export interface Row {
  name: string;
  bars: Bar[];
  blanks: Blank[];
  /** Track of the plan times that did not run, below those of the bars. */
  blankTrack: number;
  coming: number[];
  tracks: number;
  /** Times with more than one running attempt. */
  overlaps: [from: number, to: number][];
}

const MOST_TRACKS = 6;
export const TRACK = 16;

export function rowsOf(timeline: Timeline): Row[] {
  return timeline.lanes.map(rowOf);
}

function rowOf(lane: Lane): Row {
  const bars = lane.attempts
    .map((attempt) => ({
      key: `${attempt.run_id} ${attempt.no} ${attempt.started_at}`,
      attempt,
      state: attempt.state as Shown,
      start: Date.parse(attempt.started_at),
      end: attempt.ended_at === null ? Infinity : Date.parse(attempt.ended_at),
      track: 0,
    }))
    .sort((a, b) => a.start - b.start);
  const ends: number[] = [];
  const overlaps: [number, number][] = [];
  let reach = -Infinity;
  for (const bar of bars) {
    const free = ends.findIndex((end) => end <= bar.start);
    bar.track = free >= 0 ? free : Math.min(ends.length, MOST_TRACKS - 1);
    ends[bar.track] = Math.max(ends[bar.track] ?? -Infinity, bar.end);
    if (reach > bar.start) {
      const until = Math.min(reach, bar.end);
      const last = overlaps[overlaps.length - 1];
      if (last && last[1] >= bar.start) last[1] = Math.max(last[1], until);
      else overlaps.push([bar.start, until]);
    }
    reach = Math.max(reach, bar.end);
  }
  const blanks = (lane.gaps ?? []).map((gap) => ({ key: `gap ${gap.kind} ${gap.from} ${gap.run_id ?? gap.reason} ${lane.name}`, gap, from: Date.parse(gap.from), to: Date.parse(gap.to) }));
  const tracks = ends.length + (blanks.length ? 1 : 0);
  return { name: lane.name, bars, blanks, blankTrack: ends.length, coming: lane.coming.map((at) => Date.parse(at)), tracks: Math.max(1, tracks), overlaps };
}

/** Keep the previous order, with new lanes at the end, so that nothing moves under the pointer. */
export function inOrder(rows: Row[], before: Row[]): Row[] {
  const left = new Map(rows.map((row) => [row.name, row]));
  const kept = before.flatMap(({ name, tracks }) => {
    const row = left.get(name);
    left.delete(name);
    return row ? [{ ...row, tracks: Math.max(tracks, row.tracks) }] : [];
  });
  return [...kept, ...left.values()];
}

export interface Placed extends Row {
  top: number;
  height: number;
  /** Distance from the top to the first bar. */
  head: number;
}

export interface Sizes {
  /** Space above the bars: on a phone it holds the lane's name. */
  head: number;
  foot: number;
  least: number;
}

export function placed(rows: Row[], { head, foot, least }: Sizes): { rows: Placed[]; height: number } {
  let top = 0;
  const found = rows.map((row) => {
    const needed = head + row.tracks * TRACK + foot;
    const one = { ...row, top, height: Math.max(least, needed), head: head + Math.max(0, (least - needed) / 2) };
    top += one.height;
    return one;
  });
  return { rows: found, height: top };
}

/** Keep one of the bars with the same position and colour. Failures come last, so that they are drawn on top. */
export function visible(bars: Bar[], from: number, to: number, perPixel: number, tone: (state: Shown) => string): Bar[] {
  const seen = new Set<string>();
  const shown: Bar[] = [];
  for (const bar of bars) {
    if (bar.end < from || bar.start > to) continue;
    if (bar.end - bar.start < 4 * perPixel) {
      const [colour, room] = [tone(bar.state), bar.state === "succeeded" ? 2 : 6];
      const spot = `${Math.round((bar.start - from) / perPixel / room)} ${bar.track} ${colour}`;
      if (seen.has(spot)) continue;
      seen.add(spot);
    }
    shown.push(bar);
  }
  const rank = (bar: Bar) => (tone(bar.state) === "bad" ? 1 : 0);
  return shown.sort((a, b) => rank(a) - rank(b));
}

/** Drop each instant that is closer than `least` to the previous one. */
export function apart(times: number[], from: number, to: number, least: number): number[] {
  let last = -Infinity;
  return times.filter((at) => {
    if (at < from || at > to || at - last < least) return false;
    last = at;
    return true;
  });
}

/** Keep one of the plan times with the same position and kind. */
export function visibleBlanks(blanks: Blank[], from: number, to: number, perPixel: number): Blank[] {
  const seen = new Set<string>();
  return blanks.filter((blank) => {
    if (blank.to < from || blank.from > to) return false;
    const spot = `${blank.gap.kind} ${Math.round((blank.from - from) / perPixel / 8)} ${Math.round((blank.to - from) / perPixel / 8)}`;
    if (seen.has(spot)) return false;
    seen.add(spot);
    return true;
  });
}

/** Item that can be selected: an attempt, plan times that did not run, or a planned run. */
export type Item = { row: Placed; key: string; bar: Bar } | { row: Placed; key: string; blank: Blank } | { row: Placed; key: string; at: number };

export const startOf = (item: Item) => ("bar" in item ? item.bar.start : "blank" in item ? item.blank.from : item.at);
export const endOf = (item: Item) => ("bar" in item ? item.bar.end : "blank" in item ? item.blank.to : item.at);

export const comingKey = (lane: string, at: number) => `coming ${at} ${lane}`;

/** Return the items of a lane, sorted by time. */
export const itemsOf = (row: Placed): Item[] => [
  ...(row.blanks.length ? mixedOf(row) : row.bars.map((bar) => ({ row, key: bar.key, bar }))),
  ...row.coming.map((at) => ({ row, key: comingKey(row.name, at), at })),
];

const mixedOf = (row: Placed): Item[] =>
  [...row.bars.map((bar): Item => ({ row, key: bar.key, bar })), ...row.blanks.map((blank): Item => ({ row, key: blank.key, blank }))].sort((a, b) => startOf(a) - startOf(b));

/** Timeline chart: lanes of bars, moved with pointer, wheel and keys. */
import { memo, useMemo, useRef, useState, type KeyboardEvent, type MouseEvent, type PointerEvent } from "react";
import { useWords } from "../../i18n";
import { href, Link, navigate } from "../../router";
import { Axis, Details, Grid } from "./Axis";
import { Density, Shade } from "./Density";
import { LaneDrawing } from "./LaneDrawing";
import { endOf, inOrder, itemsOf, placed, startOf, TRACK, type Item, type Placed, type Row, type Sizes } from "./lanes";
import { laneLink, type By } from "./links";
import { useDrag, useNarrow, useSight, useWheel, useWidth } from "./gestures";
import type { TimeRange } from "./range";
import { timelineWords } from "./words";

interface ChartProps {
  by: By;
  rows: Row[];
  /** From here on no attempt is left out. */
  complete: number | null;
  range: TimeRange;
  still: boolean;
  onPoint: (pointing: boolean) => void;
}

const WIDE: Sizes = { head: 5, foot: 7, least: 36 };
const NARROW: Sizes = { head: 24, foot: 8, least: 48 };
const NEAR = 7;
const BEYOND = 400;
const DRAWN = 1.25;

export function TimelineChart({ by, rows, complete, range, still, onPoint }: ChartProps) {
  const t = useWords(timelineWords);
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const narrow = useNarrow();
  const sizes = narrow ? NARROW : WIDE;
  const before = useRef<Row[]>([]);
  const ordered = useMemo(() => (before.current = still ? inOrder(rows, before.current) : rows), [rows, still]);
  const { rows: lanes, height } = useMemo(() => placed(ordered, sizes), [ordered, sizes]);
  const [top, bottom] = useSight(box);
  const [here, setHere] = useState<string | null>(null);
  const found = useMemo(() => find(lanes, here), [lanes, here]);
  const { from, to, span, now } = range;
  const x = (at: number) => ((at - from) / span) * width;
  // Draw from a fixed instant and beyond the visible range, so that panning needs no redraw.
  const base = Math.floor(from / (span / 4)) * (span / 4);
  const attempts = useMemo(() => rows.reduce((total, row) => total + row.bars.length, 0), [rows]);

  const drag = useDrag(box, range, width);
  useWheel(box, range);
  const keys = useWalk({ lanes, found, range, setHere, by });

  const hit = (event: { clientX: number; clientY: number }): Item | null => {
    const area = box.current!.getBoundingClientRect();
    return under(lanes, event.clientX - area.left, event.clientY - area.top, (at) => x(at), now);
  };
  const point = (event: PointerEvent) => {
    if (drag.move(event)) return setHere(null);
    setHere(hit(event)?.key ?? null);
  };
  const open = (event: MouseEvent) => {
    if (drag.moved()) return;
    const item = hit(event);
    if (!item) return;
    if (event.metaKey || event.ctrlKey) window.open(href(placeOf(item, by)), "_blank", "noopener");
    else navigate(placeOf(item, by));
  };
  return (
    <div className="timeline-body" onPointerEnter={() => onPoint(true)} onPointerLeave={() => onPoint(false)}>
      <Axis range={range} width={width} />
      {complete !== null && complete > from && <Density range={range} width={width} complete={complete} />}
      <Names lanes={lanes} by={by} />
      <div
        ref={box}
        className="timeline-plot"
        data-over={here !== null ? "" : undefined}
        data-drag={drag.active ? "" : undefined}
        role="application"
        aria-label={t.chart(lanes.length, attempts)}
        aria-describedby="timeline-keys"
        tabIndex={0}
        onKeyDown={keys}
        onPointerDown={drag.down}
        onPointerMove={point}
        onPointerUp={drag.up}
        onPointerCancel={drag.up}
        onPointerLeave={() => setHere(null)}
        onClick={open}
        onBlur={() => setHere(null)}
      >
        <svg width={width} height={height} aria-hidden="true">
          <Grid lanes={lanes} range={range} width={width} height={height} />
          {complete !== null && complete > from && <Shade width={Math.min(width, x(complete))} height={height} />}
          <g transform={`translate(${x(base)})`}>
            {lanes
              .filter((row) => row.top + row.height > top - BEYOND && row.top < bottom + BEYOND)
              .map((row) => (
                <LaneDrawing
                  key={row.name}
                  row={row}
                  from={base}
                  to={base + span * DRAWN}
                  width={width * DRAWN}
                  now={row.bars.some((bar) => bar.end === Infinity) ? now : Infinity}
                  here={found?.row.name === row.name ? here : null}
                  mild={isMild(by)}
                />
              ))}
          </g>
          {now >= from && now <= to && <line className="timeline-now" x1={x(now)} x2={x(now)} y1={0} y2={height} />}
        </svg>
        {found && <Details item={found} left={x(startOf(found))} width={width} top={found.row.top + found.row.height} now={now} />}
      </div>
      <p id="timeline-keys" className="unseen">
        {t.keys}
      </p>
    </div>
  );
}

const Names = memo(function Names({ lanes, by }: { lanes: Placed[]; by: By }) {
  const t = useWords(timelineWords);
  return (
    <ul className="timeline-names" aria-label={t.lane}>
      {lanes.map((row) => (
        <li key={row.name} style={{ height: row.height }}>
          <Link className="clip" to={laneLink(by, row.name)} title={row.name}>
            {row.name}
          </Link>
          {row.overlaps.length > 0 && (
            <span className={`timeline-overlaps ${isMild(by) ? "tone-idle" : "tone-warn"}`} title={t.overlapsAbout}>
              {t.overlaps}
            </span>
          )}
        </li>
      ))}
    </ul>
  );
});

const isMild = (by: By) => by !== "schedule";

/** Address that Enter and a click open. */
function placeOf(item: Item, by: By): string {
  const run = "bar" in item ? item.bar.attempt.run_id : "blank" in item ? item.blank.gap.run_id : null;
  return run ? `/runs/${run}` : laneLink(by, item.row.name);
}

function find(lanes: Placed[], key: string | null): Item | null {
  if (key === null) return null;
  for (const row of lanes) {
    const item = itemsOf(row).find((each) => each.key === key);
    if (item) return item;
  }
  return null;
}

function under(lanes: Placed[], left: number, top: number, x: (at: number) => number, now: number): Item | null {
  const row = lanes.find((each) => top >= each.top && top < each.top + each.height);
  if (!row) return null;
  const track = Math.max(0, Math.min(row.tracks - 1, Math.floor((top - row.top - row.head) / TRACK)));
  let best: Item | null = null;
  let least = NEAR;
  for (const item of itemsOf(row)) {
    if ("bar" in item ? item.bar.track !== track : "blank" in item && row.blankTrack !== track) continue;
    const start = x(startOf(item));
    const end = "at" in item ? start : Math.max(start + 3, x(Math.min(endOf(item), now)));
    const away = left < start ? start - left : left > end ? left - end : 0;
    if (away < least) [best, least] = [item, away];
  }
  return best;
}

interface Walk {
  lanes: Placed[];
  found: Item | null;
  range: TimeRange;
  setHere: (key: string | null) => void;
  by: By;
}

function useWalk({ lanes, found, range, setHere, by }: Walk) {
  const inSight = (row: Placed) => itemsOf(row).filter((item) => endOf(item) >= range.from && startOf(item) <= range.to);
  const nearest = (row: Placed | undefined, at: number) => {
    const away = (item: Item) => Math.abs(startOf(item) - at);
    const item = (row ? inSight(row) : []).reduce<Item | null>((best, each) => (!best || away(each) < away(best) ? each : best), null);
    if (item) setHere(item.key);
    return !!item;
  };
  const across = (by: 1 | -1) => {
    const at = found ? lanes.findIndex((row) => row.name === found.row.name) : by === 1 ? -1 : lanes.length;
    for (let index = at + by; index >= 0 && index < lanes.length; index += by) {
      if (nearest(lanes[index], found ? startOf(found) : range.now)) return;
    }
  };
  const along = (by: 1 | -1) => {
    if (!found) return across(1);
    const items = inSight(found.row);
    const next = items[items.findIndex((item) => item.key === found.key) + by];
    if (next) setHere(next.key);
  };
  return (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const acts: Record<string, () => void> = {
      ArrowLeft: () => (event.shiftKey ? range.pan(-0.25) : along(-1)),
      ArrowRight: () => (event.shiftKey ? range.pan(0.25) : along(1)),
      ArrowUp: () => across(-1),
      ArrowDown: () => across(1),
      "+": () => range.zoom(0.5),
      "=": () => range.zoom(0.5),
      "-": () => range.zoom(2),
      "0": () => range.follow(),
      Enter: () => found && navigate(placeOf(found, by)),
      Escape: () => setHere(null),
    };
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  };
}

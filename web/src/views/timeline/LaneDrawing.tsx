/** One lane: bars, planned runs and overlaps. Only the visible part is drawn. */
import { memo } from "react";
import { shapeOf, toneOf } from "../../ui";
import { apart, comingKey, TRACK, visible, visibleBlanks, type Bar, type Blank, type Placed } from "./lanes";

interface LaneProps {
  row: Placed;
  from: number;
  to: number;
  width: number;
  /** End of the bars that are still running; Infinity if there are none. */
  now: number;
  /** Key of the item under the pointer or the keyboard focus. */
  here: string | null;
  /** Do not mark overlaps: they are normal in this grouping. */
  mild: boolean;
}

const BAR = 12;
const GLYPH = 9;

export const LaneDrawing = memo(function LaneDrawing({ row, from, to, width, now, here, mild }: LaneProps) {
  const perPixel = (to - from) / width;
  const x = (at: number) => (at - from) / perPixel;
  const y = (track: number) => row.top + row.head + track * TRACK + (TRACK - BAR) / 2;
  const foot = row.top + row.height - 3;
  return (
    <g data-lane={row.name}>
      {row.overlaps.map(([start, end]) => {
        const [left, right] = [Math.max(x(start), -2), Math.min(x(Math.min(end, now)), width + 2)];
        if (right < 0 || left > width) return null;
        return <rect key={start} className={`timeline-overlap ${mild ? "tone-idle" : "tone-warn"}`} x={left} y={foot - 1} width={Math.max(3, right - left)} height={2} />;
      })}
      {apart(row.coming, from, to, 10 * perPixel).map((at) => (
          <g key={at} className={here === comingKey(row.name, at) ? "timeline-coming here" : "timeline-coming"} data-coming="">
            <line x1={x(at)} x2={x(at)} y1={row.top + row.head} y2={row.top + row.height - 5} />
            <circle cx={x(at)} cy={y(0) + BAR / 2} r={4} />
          </g>
        ))}
      {visibleBlanks(row.blanks, from, to, perPixel).map((blank) => (
        <BlankDrawing key={blank.key} blank={blank} left={x(blank.from)} right={x(blank.to)} y={y(row.blankTrack)} width={width} here={here === blank.key} />
      ))}
      {visible(row.bars, from, to, perPixel, toneOf).map((bar) => (
        <BarDrawing key={bar.key} bar={bar} left={x(bar.start)} right={x(Math.min(bar.end, Math.max(now, bar.start)))} y={y(bar.track)} width={width} here={here === bar.key} />
      ))}
    </g>
  );
});

interface BarProps {
  bar: Bar;
  left: number;
  right: number;
  y: number;
  width: number;
  here: boolean;
}

/** Draw one attempt. A wide bar contains its shape; a narrow failure is drawn as its shape alone, and a narrow neutral outcome as a low bar. */
function BarDrawing({ bar, left, right, y, width, here }: BarProps) {
  const start = Math.max(left, -8);
  const length = Math.max(3, Math.min(right, width + 8) - start);
  const [wide, going, tone] = [length >= 16, bar.end === Infinity, toneOf(bar.state)];
  const plain = wide || going || tone === "good" || tone === "idle";
  const inset = tone === "idle" && !wide && !going ? 3.5 : 0;
  const scale = GLYPH / 12;
  const glyph = (at: number, className: string) => (
    <path className={className} d={shapeOf(bar.state)} fillRule="evenodd" transform={`translate(${at} ${y + (BAR - GLYPH) / 2}) scale(${scale})`} />
  );
  return (
    <g className={`timeline-bar tone-${tone}${here ? " here" : ""}`} data-run={bar.attempt.run_id} data-state={bar.state}>
      {plain && <rect className={going ? "going" : undefined} x={start} y={y + inset} width={length} height={BAR - 2 * inset} rx={2.5} />}
      {wide ? glyph(Math.max(start, 0) + 3.5, "inner") : !plain && glyph(start - GLYPH / 2 + 1, "outer")}
    </g>
  );
}

/** Cross of a plan time that was missed; one that was skipped has the shape of the state. */
export const MISSED = "M6 .8 11.2 6 6 11.2.8 6zm0 2.1L2.9 6 6 9.1 9.1 6z";

interface BlankProps extends Omit<BarProps, "bar"> {
  blank: Blank;
}

/** Draw plan times that did not run: a mark, and a line up to the last of them. */
function BlankDrawing({ blank, left, right, y, width, here }: BlankProps) {
  const missed = blank.gap.kind === "missed";
  const [start, end] = [Math.max(left, 0), Math.min(right, width + 8)];
  const middle = y + BAR / 2;
  return (
    <g className={`timeline-blank tone-${missed ? "bad" : "idle"}${here ? " here" : ""}`} data-gap={blank.gap.kind}>
      {end - start > GLYPH && <line x1={start} x2={end} y1={middle} y2={middle} />}
      <path d={missed ? MISSED : shapeOf("skipped")} fillRule="evenodd" transform={`translate(${start - GLYPH / 2} ${middle - GLYPH / 2}) scale(${GLYPH / 12})`} />
    </g>
  );
}

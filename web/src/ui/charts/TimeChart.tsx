/** Time series chart, drawn with uPlot. A table shows the same numbers. */
import { useEffect, useRef, useState } from "react";
import UPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useLocale, useWords } from "../../i18n";
import { common } from "../../i18n/common";
import { usePreferences } from "../../preferences";
import { useAbsolute, useZone } from "../../time";
import type { Tone } from "../data/Badge";
import { Button } from "../forms/Button";

export interface Series {
  name: string;
  values: (number | null)[];
  tone: Tone;
  /** Draw a dashed line, so that colour is not the only difference. */
  dashed?: boolean;
  /** Fill the area down to zero. */
  area?: boolean;
}

interface TimeChartProps {
  label: string;
  /** Unix timestamps in seconds, ascending. */
  times: number[];
  series: Series[];
  height?: number;
  format?: (value: number) => string;
  zone?: string | null;
  /** Stack each series on the previous ones. */
  stacked?: boolean;
}

const colour = (name: string) => {
  // Browsers resolve `light-dark()` for elements only, so a probe element reads the colour for the canvas.
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
};

const plain = (value: number) => value.toLocaleString();
const translucent = (stroke: string) => stroke.replace(/^rgb\((.*)\)$/, "rgba($1, 0.14)");

/** Draw a value between two gaps as a point: it has no neighbour to draw a line to. */
const lonely = (plot: UPlot, index: number): number[] => {
  const values = plot.data[index]!;
  const found: number[] = [];
  values.forEach((value, at) => {
    if (value != null && values[at - 1] == null && values[at + 1] == null) found.push(at);
  });
  return found;
};

interface Pointed {
  index: number;
  left: number;
  width: number;
}

export function TimeChart({ label, times, series, height = 180, format = plain, zone, stacked = false }: TimeChartProps) {
  const t = useWords(common);
  const box = useRef<HTMLDivElement>(null);
  const [asTable, setAsTable] = useState(false);
  const [pointed, setPointed] = useState<Pointed | null>(null);
  const { theme } = usePreferences();
  const shownZone = useZone(zone);
  const absolute = useAbsolute(zone);
  const locale = useLocale();
  const dark = useDark();
  const data = stacked ? heaped(series) : series.map((one) => one.values);
  const key = JSON.stringify(series.map(({ name, tone, dashed, area }) => [name, tone, dashed, area]));

  useEffect(() => {
    const element = box.current;
    if (!element || asTable) return;
    const axis = { stroke: colour("--text-3"), grid: { stroke: colour("--chart-grid"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
    const order = stacked ? series.map((_, index) => series.length - 1 - index) : series.map((_, index) => index);
    const half = stacked && times.length > 1 ? (times[1]! - times[0]!) / 2 : 0;
    // To a single point uPlot adds years; it stands in the middle of an hour instead.
    const only = times.length === 1 ? times[0]! : null;
    const plot = new UPlot(
      {
        width: element.clientWidth || 320,
        height,
        legend: { show: false },
        cursor: { y: false, points: { show: !stacked, size: 5 }, drag: { setScale: false, x: false } },
        padding: [8, 8, 0, 0],
        tzDate: (seconds) => UPlot.tzDate(new Date(seconds * 1e3), shownZone ?? Intl.DateTimeFormat().resolvedOptions().timeZone),
        scales: {
          x: { range: (_plot, low, high) => (only === null ? [low - half, high + half] : [only - 1_800, only + 1_800]) },
          y: { range: (_plot, _low, high) => [0, Math.max(1, high * 1.1)] },
        },
        axes: [
          { ...axis, space: 64, size: 36, grid: { show: false }, values: (_plot, found, _index, _space, step) => ticks(found, step, locale, shownZone) },
          { ...axis, size: 48, space: 36, values: (_plot, found) => found.map((value) => (Number.isInteger(value) || format !== plain ? format(value) : "")) },
        ],
        hooks: {
          setCursor: [
            ({ cursor }) =>
              setPointed(
                cursor.idx == null || cursor.left == null || cursor.left < 0
                  ? null
                  : { index: cursor.idx, left: cursor.left + 48, width: element.clientWidth },
              ),
          ],
        },
        series: [
          {},
          ...order.map((index) => {
            const one = series[index]!;
            const stroke = colour(`--${one.tone}`);
            return {
              label: one.name,
              stroke,
              width: stacked ? 0 : 1.5,
              dash: one.dashed && !stacked ? [4, 4] : undefined,
              fill: stacked ? stroke : one.area ? translucent(stroke) : undefined,
              paths: stacked ? UPlot.paths.bars!({ size: [0.72, 28] }) : undefined,
              points: stacked ? { show: false } : { show: true, size: 4, fill: stroke, filter: lonely },
              spanGaps: false,
            };
          }),
        ],
      },
      [times, ...order.map((index) => data[index]!)] as UPlot.AlignedData,
      element,
    );
    const watching = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height }));
    watching.observe(element);
    return () => {
      watching.disconnect();
      plot.destroy();
      setPointed(null);
    };
    // eslint-disable-next-line
  }, [asTable, height, theme, dark, locale, shownZone, key, times, stacked, JSON.stringify(data)]);

  return (
    <figure className="chart" aria-label={label}>
      <div className="row spread">
        <div className="legend">
          {series.map((one) => (
            <span key={one.name} className={`tone-${one.tone}`}>
              <i className={one.dashed && !stacked ? "dashed" : undefined} />
              {one.name}
            </span>
          ))}
        </div>
        <Button look="plain" small icon={asTable ? "chart" : "table"} label={asTable ? t.asChart : t.asTable} onClick={() => setAsTable(!asTable)} />
      </div>
      {asTable ? (
        <div className="scroll" tabIndex={0}>
          <table className="table" aria-label={label}>
            <thead>
              <tr>
                <th scope="col">{t.time}</th>
                {series.map((one) => (
                  <th key={one.name} scope="col" className="number">
                    {one.name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {times.map((time, index) => (
                <tr key={time}>
                  <th scope="row">{absolute(time * 1e3)}</th>
                  {series.map((one) => (
                    <td key={one.name} className="number">
                      {one.values[index] == null ? "–" : format(one.values[index])}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : (
        <div className="plot" aria-hidden="true" style={{ height }}>
          <div ref={box} />
          {pointed && times[pointed.index] !== undefined && (
            <div className="pointed" style={pointed.left > pointed.width / 2 ? { right: pointed.width - pointed.left + 12 } : { left: pointed.left + 12 }}>
              <span className="quiet">{absolute(times[pointed.index]! * 1e3)}</span>
              {series.map((one) => (
                <span key={one.name} className={`tone-${one.tone}`}>
                  <i className={one.dashed && !stacked ? "dashed" : undefined} />
                  {one.name}
                  <b>{one.values[pointed.index] == null ? "–" : format(one.values[pointed.index]!)}</b>
                </span>
              ))}
            </div>
          )}
        </div>
      )}
    </figure>
  );
}

/** Format axis labels as hours, with the date below the first hour of a day. */
function ticks(seconds: number[], step: number, locale: string, timeZone: string | undefined): string[] {
  const day = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short", timeZone });
  const hour = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit", second: step < 60 ? "2-digit" : undefined, hourCycle: "h23", timeZone });
  let before = "";
  return seconds.map((second) => {
    const at = new Date(second * 1e3);
    const date = day.format(at);
    if (step >= 86_400) return date;
    const text = date === before ? hour.format(at) : `${hour.format(at)}\n${date}`;
    before = date;
    return text;
  });
}

function heaped(series: Series[]): (number | null)[][] {
  const sums: number[] = [];
  return series.map((one) => one.values.map((value, index) => (sums[index] = (sums[index] ?? 0) + (value ?? 0))));
}

function useDark(): boolean {
  const query = window.matchMedia("(prefers-color-scheme: dark)");
  const [dark, setDark] = useState(query.matches);
  useEffect(() => {
    const change = () => setDark(query.matches);
    query.addEventListener("change", change);
    return () => query.removeEventListener("change", change);
  });
  return dark;
}

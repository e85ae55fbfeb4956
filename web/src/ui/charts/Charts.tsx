/** Small charts: outcome strip, sparkline and progress bar. */
import { useWords } from "../../i18n";
import { common } from "../../i18n/common";
import { shapeOf, toneOf, type Shown, type Tone } from "../data/Badge";

export interface StripItem {
  state: Shown;
  title?: string;
}

/** Strip of the last outcomes, newest on the right. Each outcome has a shape, so that colour is not the only difference. */
export function OutcomeStrip({ items, most = 30 }: { items: StripItem[]; most?: number }) {
  const t = useWords(common);
  const shown = items.slice(-most);
  const counts = new Map<Shown, number>();
  shown.forEach(({ state }) => counts.set(state, (counts.get(state) ?? 0) + 1));
  const told = [...counts].map(([state, count]) => `${count} ${t[state]}`).join(", ") || t.nothing;
  return (
    <span className="strip" role="img" aria-label={`${t.outcomes(shown.length)}: ${told}`}>
      {shown.map((item, index) => (
        <svg key={index} className={`tone-${toneOf(item.state)}`} viewBox="0 0 12 12" width="9" height="9" fill="var(--tone)">
          {item.title && <title>{item.title}</title>}
          <path d={shapeOf(item.state)} fillRule="evenodd" />
        </svg>
      ))}
    </span>
  );
}

interface SparklineProps {
  values: (number | null)[];
  label: string;
  tone?: Tone;
  width?: number;
  height?: number;
  bars?: boolean;
}

export function Sparkline({ values, label, tone = "idle", width = 96, height = 20, bars = false }: SparklineProps) {
  const known = values.filter((value): value is number => value !== null);
  const most = Math.max(1, ...known);
  const step = width / Math.max(1, bars ? values.length : values.length - 1);
  const y = (value: number) => height - 1 - (value / most) * (height - 2);
  const points = values.map((value, index) => (value === null ? null : `${(index * step).toFixed(1)},${y(value).toFixed(1)}`));
  return (
    <svg className={`spark tone-${tone}`} role="img" aria-label={label} width={width} height={height} viewBox={`0 0 ${width} ${height}`}>
      {bars
        ? values.map((value, index) =>
            value ? <rect key={index} x={index * step} y={y(value)} width={Math.max(1, step - 1)} height={height - y(value)} fill="currentColor" /> : null,
          )
        : <polyline points={points.filter(Boolean).join(" ")} fill="none" stroke="currentColor" strokeWidth="1.25" strokeLinejoin="round" />}
    </svg>
  );
}

export function ProgressBar({ percentage, label, tone = "busy" }: { percentage: number | null; label: string; tone?: Tone }) {
  return (
    <span className={`progress tone-${tone}`} role="progressbar" aria-label={label} aria-valuemin={0} aria-valuemax={100} aria-valuenow={percentage ?? undefined}>
      <span className="track">
        <i style={{ width: `${Math.max(0, Math.min(100, percentage ?? 0))}%` }} />
      </span>
      {percentage !== null && <span className="quiet">{Math.floor(percentage)}%</span>}
    </span>
  );
}

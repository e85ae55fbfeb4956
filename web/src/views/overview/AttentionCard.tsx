/** Problems that need attention, most severe first: what, since when, and what to do. */
import type { Attention, Overview } from "../../api/schema";
import { useWords } from "../../i18n";
import { Link } from "../../router";
import { Card, CopyButton, Duration, shapeOf } from "../../ui";
import { linkOf } from "./links";
import { overviewWords } from "./words";

/** Kinds that slow things down or are intended; shown as warnings. */
const MILD = new Set(["queue_paused", "job_paused", "polling", "clock", "signals_untold"]);

export function AttentionCard({ overview }: { overview: Overview | undefined }) {
  const t = useWords(overviewWords);
  const items = overview?.attention;
  const left = overview ? overview.attention_count - overview.attention.length : 0;
  const count = overview?.attention_count ? <span className="overview-count">{overview.attention_count.toLocaleString()}</span> : null;
  return (
    <Card bare title={<>{t.attention} {count}</>}>
      {!items ? (
        <div className="overview-calm">
          <span className="skeleton" />
        </div>
      ) : items.length ? (
        <>
          <ul className="overview-attention" aria-label={t.attention}>
            {items.map((item) => (
              <Item key={`${item.kind} ${item.subject}`} item={item} />
            ))}
          </ul>
          {left > 0 && <p className="overview-rest quiet">{t.more(left)}</p>}
        </>
      ) : (
        <div className="overview-calm">
          <svg className="tone-good" viewBox="0 0 12 12" aria-hidden="true">
            <path d={shapeOf("succeeded")} />
          </svg>
          <div>
            <strong>{t.calm}</strong>
            <p>{t.calmAbout}</p>
          </div>
        </div>
      )}
    </Card>
  );
}

function Item({ item }: { item: Attention }) {
  const t = useWords(overviewWords);
  const to = linkOf(item);
  const name = item.kind in t ? t[item.kind as "polling"] : item.kind;
  const mild = MILD.has(item.kind);
  return (
    <li className={mild ? "tone-warn" : "tone-bad"} data-kind={item.kind}>
      <svg viewBox="0 0 12 12" aria-hidden="true">
        <path d={shapeOf(mild ? "waiting" : "expired")} fillRule="evenodd" />
      </svg>
      <div className="grow">
        <div className="overview-line">
          {to ? <Link to={to}>{name}</Link> : <strong>{name}</strong>}
          {item.since && (
            <span className="quiet">
              {t.since} <Duration from={item.since} />
            </span>
          )}
        </div>
        <p className="hostile">{item.text}</p>
        {item.hint && <Advice text={item.hint} />}
      </div>
    </li>
  );
}

/** Hint text; a command gets a copy button. */
function Advice({ text }: { text: string }) {
  if (!text.startsWith("rota ")) return <p className="quiet hostile">{text}</p>;
  return (
    <p className="overview-advice">
      <code>{text}</code>
      <CopyButton text={text} />
    </p>
  );
}

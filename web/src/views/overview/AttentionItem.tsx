/** One item that needs attention: what, since when, and the button that helps. */
import { useMay } from "../../api/hooks";
import type { Attention } from "../../api/schema";
import { useWords } from "../../i18n";
import { useSaid } from "../../i18n/said";
import { lazily, Link } from "../../router";
import { Button, CopyButton, Duration, shapeOf } from "../../ui";
import { ActionButton } from "./ActionButton";
import { attentionWords, kindWords, nameOf } from "./attentionWords";
import { linkOf } from "./links";
import "./overview.css";

export const SnoozeDialog = lazily(() => import("./SnoozeDialog").then((file) => file.SnoozeDialog));

export const keyOf = ({ kind, subject }: Attention) => `${kind} ${subject}`;

interface ItemProps {
  item: Attention;
  to?: string | null;
  onSnooze: (item: Attention) => void;
}

export function Item({ item, to, onSnooze }: ItemProps) {
  const t = useWords(attentionWords);
  const kinds = useWords(kindWords);
  const may = useMay("operator");
  const name = nameOf(kinds, item.kind);
  const advice = item.hint ?? item.action?.command; // what tells more comes before the act, which has a button
  return (
    <Row item={item} to={to}>
      {advice && <Advice text={advice} />}
      {may && (
        <div className="row overview-acts">
          {item.action && <ActionButton action={item.action} name={`${name} ${item.subject ?? ""}`.trim()} />}
          <Button small look="plain" aria-label={t.snoozeOf(`${name} ${item.subject ?? ""}`.trim())} onClick={() => onSnooze(item)}>{t.snooze}</Button>
        </div>
      )}
    </Row>
  );
}

export function Row({ item, to = linkOf(item), children }: { item: Attention; to?: string | null; children: React.ReactNode }) {
  const t = useWords(attentionWords);
  const kinds = useWords(kindWords);
  const said = useSaid();
  const name = nameOf(kinds, item.kind);
  const mild = item.severity === "warning";
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
        <p className="hostile">{said(item.text)}</p>
        {children}
      </div>
    </li>
  );
}

/** Hint text; a command gets a copy button. */
function Advice({ text }: { text: string }) {
  const said = useSaid();
  if (!text.startsWith("rota ")) return <p className="quiet hostile">{said(text)}</p>;
  return (
    <p className="overview-advice">
      <code>{text}</code>
      <CopyButton text={text} />
    </p>
  );
}

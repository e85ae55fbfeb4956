/** Items that need attention, most severe first, and those that are snoozed. */
import { useState } from "react";
import type { Page } from "../../api/client";
import { api } from "../../api/client";
import { useCommand, useGet, useMay } from "../../api/hooks";
import type { Attention, Overview } from "../../api/schema";
import { useWords } from "../../i18n";
import { Button, Card, shapeOf, Time, useToasts } from "../../ui";
import { Item, keyOf, Row, SnoozeDialog } from "./AttentionItem";
import { attentionWords, kindWords, nameOf } from "./attentionWords";

export function AttentionCard({ overview }: { overview: Overview | undefined }) {
  const t = useWords(attentionWords);
  const [aside, setAside] = useState(false);
  const [chosen, choose] = useState<Attention | null>(null);
  const count = overview?.attention_count ? <span className="overview-count">{overview.attention_count.toLocaleString()}</span> : null;
  const toggle = (aside || !!overview?.snoozed) && (
    <Button small look="plain" aria-pressed={aside} onClick={() => setAside(!aside)}>
      {aside ? t.back : t.snoozed(overview?.snoozed ?? 0)}
    </Button>
  );
  return (
    <Card bare title={<>{t.title} {count}</>} actions={toggle}>
      {aside ? <Snoozed /> : <Open overview={overview} onSnooze={choose} />}
      {chosen && <SnoozeDialog key={keyOf(chosen)} item={chosen} onClose={() => choose(null)} />}
    </Card>
  );
}

function Open({ overview, onSnooze }: { overview: Overview | undefined; onSnooze: (item: Attention) => void }) {
  const t = useWords(attentionWords);
  const items = overview?.attention;
  const left = overview ? overview.attention_count - overview.attention.length : 0;
  if (!items) {
    return (
      <div className="overview-calm">
        <span className="skeleton" />
      </div>
    );
  }
  if (!items.length) {
    return (
      <div className="overview-calm">
        <svg className="tone-good" viewBox="0 0 12 12" aria-hidden="true">
          <path d={shapeOf("succeeded")} />
        </svg>
        <div>
          <strong>{t.calm}</strong>
          <p>{t.calmAbout}</p>
        </div>
      </div>
    );
  }
  return (
    <>
      <ul className="overview-attention" aria-label={t.title} tabIndex={0}>
        {items.map((item) => (
          <Item key={keyOf(item)} item={item} onSnooze={onSnooze} />
        ))}
      </ul>
      {left > 0 && <p className="overview-rest quiet">{t.more(left)}</p>}
    </>
  );
}

function Snoozed() {
  const t = useWords(attentionWords);
  const kinds = useWords(kindWords);
  const toasts = useToasts();
  const may = useMay("operator");
  const items = useGet<Page<Attention>>("runs", "/attention", { snoozed: true, limit: 100 }, { rest: 2_000, every: 30_000 });
  const wake = useCommand(({ kind, subject }: Attention) => api.post("/attention:unsnooze", { kind, subject }), "runs");
  if (!items.data) return <div className="overview-calm"><span className="skeleton" /></div>;
  if (!items.data.items.length) return <p className="overview-rest quiet">{t.noneSnoozed}</p>;
  const end = (item: Attention) => wake.mutate(item, { onSuccess: () => toasts.say(t.wokeUp(nameOf(kinds, item.kind))), onError: toasts.complain });
  return (
    <ul className="overview-attention" aria-label={t.isSnoozed} tabIndex={0}>
      {items.data.items.map((item) => (
        <Row key={keyOf(item)} item={item}>
          <p className="quiet">
            {item.snoozed_by ? t.snoozedBy(item.snoozed_by) : t.isSnoozed} {t.until} <Time at={item.snoozed_until!} />
            {item.snooze_reason && <>: <span className="hostile">{item.snooze_reason}</span></>}
          </p>
          {may && (
            <div className="row overview-acts">
              <Button small busy={wake.isPending} onClick={() => end(item)}>{t.unsnooze}</Button>
            </div>
          )}
        </Row>
      ))}
    </ul>
  );
}

/** What needs attention of the thing that a page is about, with the same buttons as on the overview. */
import { useState } from "react";
import type { Page } from "../../api/client";
import { useGet } from "../../api/hooks";
import type { Attention } from "../../api/schema";
import { useWords } from "../../i18n";
import { Card } from "../../ui";
import { Item, keyOf, SnoozeDialog } from "./AttentionItem";
import { attentionWords } from "./attentionWords";
import { linkOf } from "./links";

/** Return the items that lead to this address. */
export function useAttention(to: string, enabled = true): Attention[] {
  const found = useGet<Page<Attention>>("runs", "/attention", { limit: 500 }, { rest: 2_000, every: 30_000, enabled });
  return (found.data?.items ?? []).filter((item) => linkOf(item) === to);
}

interface Props {
  items: Attention[];
  /** Address of the rows behind an item, which leads here otherwise. */
  rows?: Record<string, string>;
}

export function AttentionHere({ items, rows = {} }: Props) {
  const t = useWords(attentionWords);
  const [chosen, choose] = useState<Attention | null>(null);
  if (!items.length && !chosen) return null;
  return (
    <Card bare title={t.title}>
      <ul className="overview-attention" aria-label={t.title}>
        {items.map((item) => (
          <Item key={keyOf(item)} item={item} to={rows[item.kind] ?? null} onSnooze={choose} />
        ))}
      </ul>
      {chosen && <SnoozeDialog key={keyOf(chosen)} item={chosen} onClose={() => choose(null)} />}
    </Card>
  );
}

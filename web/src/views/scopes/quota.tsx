/** A quota in words, and the badge of its state. */
import type { QuotaOf } from "../../api/schema";
import { useWords } from "../../i18n";
import { Badge, Time } from "../../ui";
import { scopesWords } from "./words";

export function Allowed({ quota }: { quota: QuotaOf }) {
  const t = useWords(scopesWords);
  const told = [
    quota.max_concurrency !== null && t.atOnce(quota.max_concurrency),
    quota.rate !== null && quota.rate,
    quota.max_queued !== null && t.mayWait(quota.max_queued),
  ].filter(Boolean);
  return told.length ? <>{told.join(", ")}</> : <span className="quiet">{t.noNumber}</span>;
}

export function QuotaBadge({ quota }: { quota: QuotaOf }) {
  const t = useWords(scopesWords);
  return quota.paused ? <Badge tone="warn" shape="waiting">{t.paused}</Badge> : <Badge tone="good" shape="succeeded">{t.open}</Badge>;
}

export function PausedNotice({ quota }: { quota: QuotaOf }) {
  const t = useWords(scopesWords);
  return (
    <div className="notice tone-warn">
      <strong>{t.pausedBy(quota.paused_by ?? t.somebody)}</strong>
      <span>{quota.reason || t.noReason}</span>
      {quota.paused_at && <span className="quiet"><Time at={quota.paused_at} show="both" /></span>}
    </div>
  );
}

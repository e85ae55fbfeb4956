/** The live limit of a queue or a job: what it allows, who set it, since when and why. */
import type { LiveLimit } from "../../api/schema";
import { useWords } from "../../i18n";
import { Time } from "../../ui";
import { limitWords } from "./words";

export function LimitNotice({ limit }: { limit: LiveLimit }) {
  const t = useWords(limitWords);
  return (
    <div className="notice tone-warn">
      <strong>{t.limited(allowed(limit, t.atOnce), limit.by ?? t.somebody)}</strong>
      <span>{limit.reason || t.noReason}</span>
      {limit.since && <span className="quiet"><Time at={limit.since} show="both" /></span>}
      {limit.until && <span className="quiet">{t.until} <Time at={limit.until} show="both" /></span>}
    </div>
  );
}

/** The numbers of a limit in one line. */
export const allowed = (limit: LiveLimit, atOnce: (most: number) => string) =>
  [limit.max_concurrency !== null && atOnce(limit.max_concurrency), limit.rate].filter(Boolean).join(", ");

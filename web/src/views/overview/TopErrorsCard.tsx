/** The most frequent errors of the last day, across jobs. */
import { part } from "../../api/client";
import { useGet } from "../../api/hooks";
import type { ErrorGroup, ErrorGroups } from "../../api/schema";
import { useWords } from "../../i18n";
import { Link } from "../../router";
import { Card, EmptyState, useNow } from "../../ui";
import { attentionWords } from "./attentionWords";

const DAY = 86_400_000;
const SHOWN = 5;

export function TopErrorsCard() {
  const t = useWords(attentionWords);
  const since = Math.floor(useNow() / 600_000) * 600_000 - DAY;
  const groups = useGet<ErrorGroups>(null, "/error-groups", { since: new Date(since).toISOString(), all_jobs: true, sort: "count", limit: SHOWN }, { keep: true, every: 30_000 });
  const items = groups.data?.items;
  return (
    <Card bare title={t.errors} actions={<Link className="button plain small" to="/error-groups">{t.allErrors}</Link>}>
      {!items ? (
        <div className="overview-calm"><span className="skeleton" /></div>
      ) : items.length ? (
        <ol className="overview-errors" aria-label={t.errors}>
          {items.map((group) => (
            <Line key={`${group.fingerprint} ${group.job}`} group={group} />
          ))}
        </ol>
      ) : (
        <EmptyState title={t.noErrors}>{t.noErrorsAbout}</EmptyState>
      )}
    </Card>
  );
}

function Line({ group }: { group: ErrorGroup }) {
  const t = useWords(attentionWords);
  const more = group.job_count > 1 ? ` +${group.job_count - 1}` : "";
  return (
    <li>
      <Link to={group.fingerprint ? `/error-groups/${part(group.fingerprint)}` : "/error-groups"} className="clip" title={group.message ?? undefined}>
        {group.type ? `${group.type}: ${group.message?.split("\n")[0]}` : t.noMessage}
      </Link>
      <span className="quiet">
        {group.job}{more} · {t.times(group.count)}
      </span>
    </li>
  );
}

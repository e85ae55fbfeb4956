/** Table of error groups. An expanded group shows its newest run. */
import { Fragment, useEffect, useMemo, useRef, useState } from "react";
import { useMay } from "../../api/hooks";
import type { ErrorGroup, ErrorGroups } from "../../api/schema";
import { useWords } from "../../i18n";
import { Link } from "../../router";
import { Button, Icon, Sparkline, Time, useKeys } from "../../ui";
import { inOrder, keyOf, runsOf } from "./groups";
import { GroupDetails } from "./GroupDetails";
import { errorsWords } from "./words";

interface TableProps {
  found: ErrorGroups | undefined;
  opened: string | null;
  onOpen: (key: string | null) => void;
  onRetry: (group: ErrorGroup) => void;
}

const LOADING = 4;

export function GroupTable({ found, opened, onOpen, onRetry }: TableProps) {
  const t = useWords(errorsWords);
  const may = useMay("operator");
  const [still, setStill] = useState(false);
  const order = useRef<string[]>([]);
  const body = useRef<HTMLTableSectionElement>(null);
  const groups = useMemo(() => {
    const shown = found && (still ? inOrder(found.items, order.current) : found.items);
    order.current = shown?.map(keyOf) ?? [];
    return shown;
  }, [found, still]);
  const walk = (by: number) => {
    const buttons = [...(body.current?.querySelectorAll<HTMLElement>(".errors-name") ?? [])];
    const at = buttons.indexOf(document.activeElement as HTMLElement);
    buttons[Math.max(0, Math.min(buttons.length - 1, at + by))]?.focus();
  };
  useKeys({
    j: () => walk(1),
    k: () => walk(-1),
    r: () => {
      const key = document.activeElement?.closest("tr")?.dataset.key;
      const group = groups?.find((each) => keyOf(each) === key);
      if (may && group && isRetryable(group)) onRetry(group);
    },
  });
  const columns = useSpanned(may);
  return (
    <div className="table-wrap">
      <table className="table errors-table" aria-label={t.groups} aria-busy={!groups}>
        <thead>
          <tr>
            <th scope="col">{t.error}</th>
            <th scope="col" data-priority="low" className="errors-when">
              {t.when}
            </th>
            <th scope="col" className="number errors-count">
              {t.count}
            </th>
            <th scope="col" className="errors-seen">
              {t.last}
            </th>
            <th scope="col" data-priority="lowest" className="errors-seen">
              {t.first}
            </th>
            {may && (
              <th scope="col" data-priority="low" className="errors-act">
                <span className="unseen">{t.act}</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody ref={body} onPointerEnter={() => setStill(true)} onPointerLeave={() => setStill(false)}>
          {groups
            ? groups.map((group) => {
                const key = keyOf(group);
                const open = opened === key;
                return (
                  <Fragment key={key}>
                    <Line group={group} open={open} may={may} onToggle={() => onOpen(open ? null : key)} onRetry={() => onRetry(group)} />
                    {open && (
                      <tr className="errors-opened">
                        <td colSpan={columns}>
                          <GroupDetails group={group} since={found!.since} until={found!.until} onRetry={may ? onRetry : undefined} />
                        </td>
                      </tr>
                    )}
                  </Fragment>
                );
              })
            : Array.from({ length: LOADING }, (_, line) => (
                <tr key={line} aria-hidden="true">
                  <td colSpan={columns}>
                    <span className="skeleton" style={{ width: `${45 + line * 9}%` }} />
                  </td>
                </tr>
              ))}
        </tbody>
      </table>
    </div>
  );
}

/** Return the number of visible columns. A larger colspan would add columns on small screens. */
function useSpanned(may: boolean): number {
  const [phone, small] = useMemo(() => ["(max-width: 40rem)", "(max-width: 60rem)"].map((query) => window.matchMedia(query)), []);
  const [, changed] = useState(0);
  useEffect(() => {
    const change = () => changed((before) => before + 1);
    [phone!, small!].forEach((query) => query.addEventListener("change", change));
    return () => [phone!, small!].forEach((query) => query.removeEventListener("change", change));
  }, [phone, small]);
  if (phone!.matches) return 3;
  return (small!.matches ? 4 : 5) + (may ? 1 : 0);
}

/** Return whether a search finds all runs of the group, and no others. */
const isRetryable = (group: ErrorGroup) => group.fingerprint !== null && !(group.parts?.length > 1);

interface LineProps {
  group: ErrorGroup;
  open: boolean;
  may: boolean;
  onToggle: () => void;
  onRetry: () => void;
}

function Line({ group, open, may, onToggle, onRetry }: LineProps) {
  const t = useWords(errorsWords);
  const type = group.type ?? t.unsaid;
  return (
    <tr data-key={keyOf(group)} data-open={open ? "" : undefined}>
      <th scope="row" className="errors-what">
        <button type="button" className="errors-name" aria-expanded={open} onClick={onToggle}>
          <Icon name={open ? "chevron" : "right"} />
          <span className="errors-text">
            <span className="errors-type">
              <strong className="clip">{type}</strong>
              <span className="quiet clip" title={group.parts?.map((part) => part.job).join(", ")}>{group.job_count > 1 ? t.jobs(group.job, group.job_count - 1) : group.job}</span>
            </span>
            <span className="clip errors-message">{group.message?.split("\n")[0] || "\u00a0"}</span>
          </span>
        </button>
      </th>
      <td data-priority="low">
        <Sparkline values={[...group.histogram]} label={t.histogram(group.count)} tone="bad" bars width={120} height={24} />
      </td>
      <td className="number">
        <Link to={runsOf(group)} title={t.runs}>
          {group.count.toLocaleString()}
        </Link>
      </td>
      <td>
        <Time at={group.last_at} />
      </td>
      <td data-priority="lowest">
        <Time at={group.first_at} />
      </td>
      {may && (
        <td data-priority="low">
          {isRetryable(group) && (
            <Button small icon="retry" aria-label={t.retryAllOf(type, group.job_count > 1 ? t.jobs(group.job, group.job_count - 1) : group.job)} onClick={onRetry}>
              {t.retryAll}
            </Button>
          )}
        </td>
      )}
    </tr>
  );
}

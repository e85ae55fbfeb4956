/** Dialog for an action on many schedules: the selected ones, or all that match. */
import { useEffect, useState } from "react";
import { useQueryClient } from "@tanstack/react-query";
import { api, type Page, type Parameters } from "../../../api/client";
import { problemOf, type Problem } from "../../../api/problem";
import type { BulkResult } from "../../../api/schema";
import { useWords } from "../../../i18n";
import { useSaid } from "../../../i18n/said";
import { common } from "../../../i18n/common";
import { Button, ConfirmDialog, Dialog, Field, ProgressBar } from "../../../ui";
import type { Schedule } from "../types";
import { schedulesWords } from "../words";

export type BulkAct = "pause" | "resume" | "enable" | "disable";

const PAGE = 500;
const BITE = 100;

/** Load the names of all matching schedules, page by page. */
async function named(filter: Parameters, signal: AbortSignal): Promise<string[]> {
  const found: string[] = [];
  let cursor: string | null = null;
  do {
    const page: Page<Schedule> = await api.get("/schedules", { ...filter, limit: PAGE, cursor }, signal);
    found.push(...page.items.map((schedule) => schedule.name));
    cursor = page.next_cursor;
  } while (cursor);
  return found;
}

const EMPTY: BulkResult = { matched: 0, done: 0, refused: [] };

function sum(before: BulkResult, after: BulkResult): BulkResult {
  const refused = new Map(before.refused.map((one) => [one.code, one]));
  for (const one of after.refused) {
    const known = refused.get(one.code);
    refused.set(one.code, known ? { ...known, count: known.count + one.count } : one);
  }
  return { matched: before.matched + after.matched, done: before.done + after.done, refused: [...refused.values()] };
}

interface BulkProps {
  action: BulkAct;
  /** Names of the schedules; null for all that match the filter. */
  names: string[] | null;
  filter: Parameters;
  close: () => void;
  done: () => void;
}

export function BulkDialog({ action, names: chosen, filter, close, done }: BulkProps) {
  const t = useWords(schedulesWords);
  const said = useSaid();
  const both = useWords(common);
  const queries = useQueryClient();
  const [names, setNames] = useState(chosen);
  const [reason, setReason] = useState("");
  const [result, setResult] = useState<BulkResult | null>(null);
  const [over, setOver] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    if (chosen) return;
    const stop = new AbortController();
    named(filter, stop.signal).then(setNames, (error: unknown) => stop.signal.aborted || setProblem(problemOf(error)));
    return () => stop.abort();
    // eslint-disable-next-line
  }, []);

  const about = { pause: t.bulkPause, resume: t.bulkResume, enable: t.bulkEnable, disable: t.bulkDisable }[action];
  const verb = t[action];
  const begin = async () => {
    let sofar = EMPTY;
    setResult(sofar);
    setProblem(null);
    try {
      for (let from = 0; from < names!.length; from += BITE) {
        const bite = names!.slice(from, from + BITE);
        sofar = sum(sofar, await api.post<BulkResult>("/schedules:bulk", { action, names: bite, reason: reason.trim() || null }));
        setResult(sofar);
      }
      done();
    } catch (error) {
      setProblem(problemOf(error));
    }
    setOver(true);
    void queries.invalidateQueries({ queryKey: ["schedules"] });
  };

  if (result) {
    const count = names!.length;
    const handled = result.done + result.refused.reduce((all, one) => all + one.count, 0);
    return (
      <Dialog title={verb} open onClose={over ? close : () => undefined}>
        <ProgressBar percentage={(handled * 100) / Math.max(1, count)} label={verb} tone={over && !problem ? "good" : "busy"} />
        <p role="status">{t.bulkDone(result.done, count)}</p>
        {result.refused.map((one) => (
          <p key={one.code} className="tone-bad schedules-trouble hostile">
            {t.bulkRefused(one.count, said(one.message))}
          </p>
        ))}
        {problem && <p className="tone-bad schedules-trouble hostile">{said(problem.detail)}</p>}
        <footer>
          <Button onClick={close} disabled={!over} autoFocus>
            {both.close}
          </Button>
        </footer>
      </Dialog>
    );
  }
  return (
    <ConfirmDialog
      open
      title={names ? t.bulkTitle(verb, names.length) : t.counting}
      consequence={about}
      action={verb}
      danger={action === "disable"}
      busy={!names?.length}
      problem={problem}
      onClose={close}
      onConfirm={() => void begin()}
    >
      {action === "pause" && (
        <Field name={t.reason} hint={t.reasonHint}>
          <input value={reason} maxLength={1000} onChange={(event) => setReason(event.target.value)} />
        </Field>
      )}
    </ConfirmDialog>
  );
}

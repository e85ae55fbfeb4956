/** Dialog for an action on many runs: count, progress and result. */
import { useRef, useState } from "react";
import { useQueryClient } from "@tanstack/react-query";
import { api, type Parameters } from "../../../api/client";
import { useGet } from "../../../api/hooks";
import { Problem, problemOf } from "../../../api/problem";
import type { BulkResult, Counted, Refused, RunState } from "../../../api/schema";
import { useWords } from "../../../i18n";
import { useSaid } from "../../../i18n/said";
import { Button, Dialog, Field, ProblemNotice, ProgressBar } from "../../../ui";
import { common } from "../../../i18n/common";
import { filterOf, format, LIVE, toQuery, statesOf, RETRYABLE, type Token } from "../search";
import { runsWords } from "../words";

export interface BulkAction {
  action: "retry" | "cancel";
  /** Ids of the runs; without them, all runs that match `tokens`. */
  ids?: string[];
  tokens?: Token[];
}

interface Going {
  matched: number;
  result: BulkResult;
  over: boolean;
}

/** Narrow the filter to the states that the action accepts, so that the count is accurate. */
function target({ action, tokens = [] }: BulkAction): Parameters {
  const { query } = toQuery(tokens);
  const asked = statesOf(tokens);
  const possible: RunState[] = action === "cancel" ? LIVE : RETRYABLE;
  const wanted = asked.length ? asked.filter((state) => (action === "cancel" ? LIVE.includes(state) : !LIVE.includes(state))) : possible;
  return { ...query, state: wanted.length ? wanted : possible.slice(0, 0), ...(action === "retry" ? { retried: "false" } : {}) };
}

export function BulkDialog(props: BulkAction & { onClose: () => void; onDone: () => void }) {
  const { action, ids, tokens = [], onClose, onDone } = props;
  const t = useWords(runsWords);
  const queries = useQueryClient();
  const filter = target(props);
  const impossible = !ids && !(filter.state as string[]).length;
  const counted = useGet<Counted>(null, "/runs:count", filter, { enabled: !ids && !impossible });
  const [reason, setReason] = useState("");
  const [going, setGoing] = useState<Going | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const stop = useRef(new AbortController());

  const count = ids ? ids.length : impossible ? 0 : counted.data?.count;
  const written = count === undefined ? "…" : `${count.toLocaleString()}${counted.data && !counted.data.exact ? "+" : ""}`;
  const begin = async () => {
    setProblem(null);
    try {
      const steps = ids ? oneByOne(action, ids, reason, stop.current.signal) : atOnce(action, filter, reason, counted.data!, stop.current.signal);
      for await (const step of steps) setGoing(step);
      onDone();
    } catch (error) {
      if (error instanceof DOMException) return;
      setProblem(problemOf(error));
      if (problemOf(error).code === "bulk-mismatch") void counted.refetch();
    } finally {
      setGoing((before) => before && { ...before, over: true });
      void queries.invalidateQueries({ queryKey: ["runs"] });
    }
  };
  const close = () => {
    stop.current.abort();
    onClose();
  };

  return (
    <Dialog title={action === "retry" ? t.retryTitle(written) : t.cancelTitle(written)} open onClose={close} alert={!!going && !going.over}>
      {going ? (
        <Progress action={action} going={going} />
      ) : (
        <>
          <p>{action === "retry" ? t.retryAbout : t.cancelAbout}</p>
          <dl className="facts">
            <dt>{t.matching}</dt>
            <dd className="mono">{ids ? t.chosenRuns : format(tokens) || t.everything}</dd>
          </dl>
          {!ids && <p className="quiet">{action === "cancel" ? t.cancelOnly : statesOf(tokens).length ? t.retryRest : t.retryOnly}</p>}
          {action === "cancel" && (
            <Field name={t.reason} hint={t.reasonHint}>
              <input value={reason} maxLength={1000} onChange={(event) => setReason(event.target.value)} />
            </Field>
          )}
          {count === 0 && <p className="quiet">{t.noneLeft}</p>}
        </>
      )}
      {counted.error && <ProblemNotice problem={counted.error} />}
      {problem && <ProblemNotice problem={problem} />}
      <Buttons action={action} written={written} going={going} ready={!!count} onBegin={() => void begin()} onClose={close} />
    </Dialog>
  );
}

interface ButtonsProps {
  action: "retry" | "cancel";
  written: string;
  going: Going | null;
  ready: boolean;
  onBegin: () => void;
  onClose: () => void;
}

function Buttons({ action, written, going, ready, onBegin, onClose }: ButtonsProps) {
  const t = useWords(runsWords);
  const both = useWords(common);
  if (going) {
    return (
      <footer>
        <Button look={going.over ? "primary" : undefined} onClick={onClose}>
          {going.over ? t.done : t.stop}
        </Button>
      </footer>
    );
  }
  return (
    <footer>
      <Button onClick={onClose}>{both.notNow}</Button>
      <Button look={action === "cancel" ? "danger primary" : "primary"} disabled={!ready} onClick={onBegin}>
        {`${action === "retry" ? t.retry : t.cancel} ${written}`}
      </Button>
    </footer>
  );
}

function Progress({ action, going }: { action: "retry" | "cancel"; going: Going }) {
  const t = useWords(runsWords);
  const { result, matched, over } = going;
  const refused = result.refused.reduce((sum, one) => sum + one.count, 0);
  const handled = result.done + refused;
  return (
    <div className="stack" role="status">
      <ProgressBar percentage={matched ? (handled * 100) / matched : 100} label={t.progress} tone={over ? "good" : "busy"} />
      <span>{over ? (action === "retry" ? t.retried(result.done) : t.cancelled(result.done)) : t.doing(handled, matched)}</span>
      {result.refused.map((one) => (
        <RefusedLine key={one.code} refused={one} />
      ))}
    </div>
  );
}

function RefusedLine({ refused }: { refused: Refused }) {
  const t = useWords(runsWords);
  const said = useSaid();
  return (
    <div className="notice tone-warn">
      <strong>{t.refused(refused.count)}</strong>
      <span>{said(refused.message)}</span>
    </div>
  );
}

async function* atOnce(action: string, filter: Parameters, reason: string, counted: Counted, signal: AbortSignal): AsyncGenerator<Going> {
  const body = {
    action,
    filter: filterOf(filter),
    // Let the server refuse if more runs match now. An inexact count cannot be compared.
    expected: counted.exact ? counted.count : undefined,
    reason: reason || undefined,
  };
  let matched = counted.count;
  for await (const line of api.lines("/runs:bulk", body, signal)) {
    const { progress, result } = line as { progress?: BulkResult; result?: BulkResult };
    const found = (result ?? progress)!;
    matched = found.matched;
    yield { matched, result: found, over: !!result };
  }
}

async function* oneByOne(action: string, ids: string[], reason: string, signal: AbortSignal): AsyncGenerator<Going> {
  let result: BulkResult = { matched: ids.length, done: 0, refused: [] };
  yield { matched: ids.length, result, over: false };
  for (const id of ids) {
    try {
      await api.post(`/runs/${id}/${action}`, action === "cancel" && reason ? { reason } : {}, { signal });
      result = { ...result, done: result.done + 1 };
    } catch (error) {
      const problem = problemOf(error);
      if (problem.away || problem.status === 401) throw error;
      result = { ...result, refused: withOne(result.refused, problem, id) };
    }
    yield { matched: ids.length, result, over: id === ids.at(-1) };
  }
}

function withOne(refused: Refused[], problem: Problem, id: string): Refused[] {
  const known = refused.find((one) => one.code === problem.code);
  if (!known) return [...refused, { code: problem.code, count: 1, message: problem.detail, examples: [id] }];
  return refused.map((one) => (one === known ? { ...one, count: one.count + 1 } : one));
}

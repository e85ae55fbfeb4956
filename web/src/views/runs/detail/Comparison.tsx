/** Tab that compares a run with another: by default the last good run of the same job, schedule and scope before it. */
import { useMemo, useState } from "react";
import type { Page } from "../../../api/client";
import { useGet } from "../../../api/hooks";
import type { LogPage, Run } from "../../../api/schema";
import { useWords } from "../../../i18n";
import { useParameter } from "../../../router";
import { Card, duration, EmptyState, ProblemNotice, StateBadge, Time, useNow } from "../../../ui";
import { RunLink } from "../RunLink";
import { scopeText } from "../search";
import { changesOf, comparedLogs, type Change, type Line } from "./changes";
import { comparisonWords } from "./comparisonWords";
import "./comparison.css";

const LOG = 400;

export function ComparisonTab({ run }: { run: Run }) {
  const t = useWords(comparisonWords);
  const [chosen, choose] = useParameter("with");
  const question = { job: run.job, schedule: run.schedule, scope: scopeText(run.scope), state: ["succeeded"], created_before: run.created_at, limit: 2 };
  const last = useGet<Page<Run>>(null, "/runs", question, { enabled: !chosen });
  const lastId = last.data?.items.find((one) => one.id !== run.id)?.id ?? null;
  const id = chosen ?? lastId;
  const other = useGet<Run>(null, `/runs/${id}`, {}, { enabled: !!id });
  const problem = last.error ?? other.error;
  return (
    <div className="stack">
      <div className="compare-with">
        <span>{chosen ? t.chosen : t.lastGood}</span> {id && <RunLink id={id} />}
        {other.data && <Time at={other.data.created_at} />}
        <Chooser onChoose={choose} chosen={chosen} />
      </div>
      {problem && <ProblemNotice problem={problem} />}
      {!id && last.data && <Card><EmptyState title={t.none}>{t.noneAbout}</EmptyState></Card>}
      {other.data && <Compared run={run} other={other.data} />}
    </div>
  );
}

function Chooser({ chosen, onChoose }: { chosen: string | null; onChoose: (id: string | null) => void }) {
  const t = useWords(comparisonWords);
  const [text, setText] = useState("");
  return (
    <form
      className="row"
      onSubmit={(event) => {
        event.preventDefault();
        onChoose(text.trim() || null);
        setText("");
      }}
    >
      <input className="input" aria-label={t.another} placeholder={t.another} value={text} spellCheck={false} onChange={(event) => setText(event.target.value)} />
      {chosen && (
        <button type="button" className="button small" onClick={() => onChoose(null)}>
          {t.backToLast}
        </button>
      )}
    </form>
  );
}

type Fact = [name: string, own: string | null, other: string | null, differs: boolean];

/** Tell a span that is much longer or shorter: they are never the same. */
const apart = (a: number | null, b: number | null) => a !== null && b !== null && Math.abs(a - b) > 100 && Math.max(a, b) > 2 * Math.min(a, b);

function Compared({ run, other }: { run: Run; other: Run }) {
  const t = useWords(comparisonWords);
  const now = useNow();
  const span = (name: string, own: number | null, others: number | null): Fact => [name, written(own), written(others), apart(own, others)];
  const fact = (name: string, own: string | number | null, others: string | number | null): Fact => [name, own === null ? null : String(own), others === null ? null : String(others), own !== others];
  const facts: Fact[] = [
    span(t.waited, waited(run, now), waited(other, now)),
    span(t.took, took(run, now), took(other, now)),
    fact(t.attempt, run.attempt, other.attempt),
    fact(t.version, run.job_version, other.job_version),
    fact(t.worker, run.worker_id, other.worker_id),
    fact(t.queue, run.queue, other.queue),
    fact(t.priority, run.priority, other.priority),
    fact(t.scope, scopeText(run.scope), scopeText(other.scope)),
    fact(t.tags, run.tags.join(", ") || null, other.tags.join(", ") || null),
  ];
  return (
    <>
      <Card bare>
        <table className="table compare" aria-label={t.facts}>
          <thead>
            <tr>
              <th scope="col">{t.field}</th>
              <th scope="col">{t.other}</th>
              <th scope="col">{t.own}</th>
            </tr>
          </thead>
          <tbody>
            <tr>
              <th scope="row">{t.state}</th>
              <td>
                <StateBadge state={other.state} />
              </td>
              <td>
                <StateBadge state={run.state} />
              </td>
            </tr>
            {facts.map(([name, own, others, differs]) => (
              <tr key={name} data-differs={differs ? "" : undefined}>
                <th scope="row">{name}</th>
                <td className="hostile">{others ?? "–"}</td>
                <td className="hostile">{own ?? "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Card>
      <Card title={t.payload}>
        <Changes label={t.payload} changes={changesOf(other.payload, run.payload)} before={t.other} after={t.own} none={t.samePayload} />
      </Card>
      {changesOf(other.metadata, run.metadata).length > 0 && (
        <Card title={t.metadata}>
          <Changes label={t.metadata} changes={changesOf(other.metadata, run.metadata)} before={t.other} after={t.own} none="" />
        </Card>
      )}
      <StepTable run={run} other={other} now={now} />
      <Logs run={run} other={other} />
    </>
  );
}

function waited(run: Run, now: number): number {
  const due = Math.max(Date.parse(run.created_at), Date.parse(run.run_at));
  const end = run.started_at ?? run.finished_at;
  return Math.max(0, (end === null ? now : Date.parse(end)) - due);
}

const took = (run: Run, now: number) => (run.started_at ? (run.finished_at ? Date.parse(run.finished_at) : now) - Date.parse(run.started_at) : null);
const written = (milliseconds: number | null) => (milliseconds === null ? null : duration(milliseconds));

interface ChangesProps {
  label: string;
  changes: Change[];
  before: string;
  after: string;
  none: string;
}

export function Changes({ label, changes, before, after, none }: ChangesProps) {
  const t = useWords(comparisonWords);
  if (!changes.length) return <p className="quiet">{none}</p>;
  return (
    <table className="table compare" aria-label={label}>
      <thead>
        <tr>
          <th scope="col">{t.field}</th>
          <th scope="col">{before}</th>
          <th scope="col">{after}</th>
        </tr>
      </thead>
      <tbody>
        {changes.map((change) => (
          <tr key={change.path}>
            <th scope="row" className="mono hostile">
              {change.path}
            </th>
            <td className="hostile">{change.before === undefined ? <span className="quiet">–</span> : <code className="compare-before">{change.before}</code>}</td>
            <td className="hostile">{change.after === undefined ? <span className="quiet">–</span> : <code className="compare-after">{change.after}</code>}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function StepTable({ run, other, now }: { run: Run; other: Run; now: number }) {
  const t = useWords(comparisonWords);
  const [own, others] = [run.progress?.steps ?? [], other.progress?.steps ?? []];
  if (!own.length && !others.length) return null;
  const byId = new Map(others.map((step) => [step.id, step]));
  const known = new Set(own.map((step) => step.id));
  const span = (step: (typeof own)[number] | undefined) =>
    step?.started_at ? (step.finished_at ? Date.parse(step.finished_at) : now) - Date.parse(step.started_at) : null;
  return (
    <Card title={t.steps} bare>
      <table className="table compare" aria-label={t.steps}>
        <thead>
          <tr>
            <th scope="col">{t.step}</th>
            <th scope="col">{t.other}</th>
            <th scope="col">{t.own}</th>
          </tr>
        </thead>
        <tbody>
          {[...own, ...others.filter((step) => !known.has(step.id))].map((step) => {
            const [mine, theirs] = [own.find((one) => one.id === step.id), byId.get(step.id)];
            const [took, before] = [span(mine), span(theirs)];
            return (
              <tr key={step.id} data-differs={apart(took, before) || mine?.state !== theirs?.state ? "" : undefined}>
                <th scope="row" className="hostile">
                  {step.name || step.id}
                </th>
                <td>{theirs ? `${theirs.state} ${written(before) ?? ""}` : "–"}</td>
                <td>{mine ? `${mine.state} ${written(took) ?? ""}` : "–"}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </Card>
  );
}

function Logs({ run, other }: { run: Run; other: Run }) {
  const t = useWords(comparisonWords);
  const own = useGet<LogPage>(null, `/runs/${run.id}/logs`, { tail: LOG });
  const others = useGet<LogPage>(null, `/runs/${other.id}/logs`, { tail: LOG });
  const lines = useMemo(() => own.data && others.data && comparedLogs(others.data.items.map(said), own.data.items.map(said)), [own.data, others.data]);
  if (!lines?.length) return null;
  const differ = lines.some((line) => line.kind !== "same");
  return (
    <Card title={t.log} bare actions={<span className="quiet">{differ ? t.logAbout : t.sameLog}</span>}>
      {differ && (
        <div className="run-log" role="region" aria-label={t.log} tabIndex={0}>
          {folded(lines).map((line, index) => (
            <div key={index} className="compare-line" data-kind={line.kind}>
              <span aria-hidden="true">{line.kind === "before" ? "−" : line.kind === "after" ? "+" : " "}</span>
              <span className="text">
                {line.kind !== "same" && <span className="unseen">{line.kind === "before" ? t.onlyOther : t.onlyOwn} </span>}
                {line.text || t.sameLines(line.count)}
              </span>
            </div>
          ))}
        </div>
      )}
    </Card>
  );
}

const said = (line: LogPage["items"][number]) => `${line.level} ${line.text}`;
const AROUND = 2;

/** Replace long stretches of equal lines by their number. */
function folded(lines: Line[]): (Line & { count: number })[] {
  const shown: (Line & { count: number })[] = [];
  let same: Line[] = [];
  const flush = (last: boolean) => {
    const [before, after] = [shown.length ? AROUND : 0, last ? 0 : AROUND];
    if (same.length <= before + after + 1) shown.push(...same.map((line) => ({ ...line, count: 1 })));
    else {
      shown.push(...same.slice(0, before).map((line) => ({ ...line, count: 1 })));
      shown.push({ kind: "same", text: "", count: same.length - before - after });
      shown.push(...same.slice(same.length - after).map((line) => ({ ...line, count: 1 })));
    }
    same = [];
  };
  for (const line of lines) {
    if (line.kind === "same") same.push(line);
    else {
      flush(false);
      shown.push({ ...line, count: 1 });
    }
  }
  flush(true);
  return shown;
}

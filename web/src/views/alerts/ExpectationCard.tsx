/** Expectations of jobs and schedules, those that are not met first. */
import { useState } from "react";
import { api, part, type Page } from "../../api/client";
import { useCommand, useGet, useMay } from "../../api/hooks";
import type { Expected } from "../../api/schema";
import { useWords } from "../../i18n";
import { Link } from "../../router";
import { Badge, Button, Card, ConfirmDialog, DataTable, EmptyState, ProblemNotice, Time, useToasts, type Column } from "../../ui";
import { ExpectDialog } from "./ExpectDialog";
import { alertsWords, optionWords } from "./words";

const rank = (expected: Expected) => (expected.breaches.length ? 0 : expected.resting ? 2 : 1);

export const keyOf = (expected: Expected) => `${expected.kind}/${expected.subject}`;

export function ExpectationCard() {
  const t = useWords(alertsWords);
  const may = useMay("admin");
  const [editing, setEditing] = useState<Expected | "new" | null>(null);
  // Breaches come and go with time; declarations are announced like every write.
  const expectations = useGet<Page<Expected>>("runs", "/expectations", { limit: 500 }, { rest: 2_000, every: 15_000 });
  const rows = expectations.data && [...expectations.data.items].sort((a, b) => rank(a) - rank(b));
  const columns: Column<Expected>[] = [
    { id: "subject", name: t.subject, cell: (expected) => <Subject expected={expected} />, sortBy: keyOf },
    { id: "state", name: t.state, cell: (expected) => <State expected={expected} />, sortBy: rank },
    { id: "expect", name: t.expected, cell: (expected) => <Options expected={expected} /> },
    { id: "why", name: t.why, cell: (expected) => <Breaches expected={expected} />, priority: "low", width: "32%" },
    ...(may ? [{ id: "actions", name: t.actions, cell: (expected: Expected) => <Actions expected={expected} onEdit={() => setEditing(expected)} />, number: true, priority: "low" as const }] : []),
  ];
  return (
    <Card bare title={t.expectations} actions={may && <Button small icon="plus" onClick={() => setEditing("new")}>{t.expect}</Button>}>
      {expectations.error && !rows ? (
        <ProblemNotice problem={expectations.error} onRetry={() => void expectations.refetch()} />
      ) : (
        <DataTable
          label={t.expectations}
          columns={columns}
          rows={rows}
          rowKey={keyOf}
          expected={3}
          empty={<EmptyState title={t.noExpectations} command="rota expectation update --job crawl --success-every 25h">{t.noExpectationsAbout}</EmptyState>}
        />
      )}
      {editing && <ExpectDialog expected={editing === "new" ? null : editing} onClose={() => setEditing(null)} />}
    </Card>
  );
}

function Subject({ expected }: { expected: Expected }) {
  const t = useWords(alertsWords);
  const place = expected.kind === "job" ? "/jobs/" : "/schedules/";
  return (
    <>
      <span className="quiet">{expected.kind === "job" ? t.job : t.schedule} </span>
      <Link to={place + part(expected.subject)}>{expected.subject}</Link>
    </>
  );
}

function State({ expected }: { expected: Expected }) {
  const t = useWords(alertsWords);
  if (expected.breaches.length) return <Badge tone="bad" shape="failed">{t.breached}</Badge>;
  if (expected.resting) return <Badge tone="idle" shape="waiting">{t.resting}</Badge>;
  return <Badge tone="good" shape="succeeded">{t.met}</Badge>;
}

function Options({ expected }: { expected: Expected }) {
  const names = useWords(optionWords) as Record<string, string>;
  return (
    <span className="alerts-lines">
      {Object.entries(expected.expect).map(([option, value]) => (
        <span key={option}>
          <span className="quiet">{names[option] ?? option}</span> {String(value)}
        </span>
      ))}
    </span>
  );
}

function Breaches({ expected }: { expected: Expected }) {
  if (!expected.breaches.length) return <span className="quiet">–</span>;
  return (
    <span className="alerts-lines">
      {expected.breaches.map((breach) => (
        <span key={breach.what}>
          {breach.message} <span className="quiet"><Time at={breach.since} /></span>
        </span>
      ))}
    </span>
  );
}

function Actions({ expected, onEdit }: { expected: Expected; onEdit: () => void }) {
  const t = useWords(alertsWords);
  const toasts = useToasts();
  const [asking, setAsking] = useState(false);
  const drop = useCommand(() => api.delete(`/expectations/${expected.kind}/${part(expected.subject)}`), "runs");
  const act = () =>
    drop.mutate(undefined, {
      onSuccess: () => {
        toasts.say({ text: t.expectationsGone(expected.subject), tone: "good" });
        setAsking(false);
      },
    });
  return (
    <span className="row">
      <Button small icon="edit" label={`${t.edit} ${expected.subject}`} onClick={onEdit} />
      <Button small look="danger" icon="trash" label={`${t.delete} ${expected.subject}`} onClick={() => setAsking(true)} />
      {asking && <ConfirmDialog title={t.dropExpectations(expected.subject)} open danger onClose={() => setAsking(false)} consequence={t.dropExpectationsAbout} action={t.delete} busy={drop.isPending} problem={drop.error} onConfirm={act} />}
    </span>
  );
}

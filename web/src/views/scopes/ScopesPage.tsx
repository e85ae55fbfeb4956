/** Quotas and paused scopes, and the way to the page of any scope. */
import { useState } from "react";
import { api, part, type Page } from "../../api/client";
import { useCommand, useGet, useMay } from "../../api/hooks";
import type { QuotaOf } from "../../api/schema";
import { useWords } from "../../i18n";
import { Link, navigate, withSearch } from "../../router";
import { Button, Card, ConfirmDialog, DataTable, EmptyState, PageHeader, ProblemNotice, SearchBox, type Column } from "../../ui";
import { scopePath } from "./links";
import { PauseButton } from "./PauseButton";
import { Allowed, QuotaBadge } from "./quota";
import { QuotaDialog } from "./QuotaDialog";
import { scopesWords, viewName } from "./words";
import "./scopes.css";

export function ScopesPage() {
  const t = useWords(scopesWords);
  const name = useWords(viewName).name;
  const may = { pause: useMay("operator"), change: useMay("admin") };
  const [adding, setAdding] = useState(false);
  const quotas = useGet<Page<QuotaOf>>("runs", "/quotas", { limit: 500 }, { rest: 1_000 });
  const columns: Column<QuotaOf>[] = [
    { id: "scope", name: t.scope, cell: (quota) => <Name quota={quota} />, sortBy: (quota) => `${quota.kind}/${quota.id ?? ""}`, clip: true },
    { id: "state", name: t.state, cell: (quota) => <QuotaBadge quota={quota} />, sortBy: (quota) => String(!quota.paused) },
    { id: "allowed", name: t.quota, cell: (quota) => <Allowed quota={quota} />, priority: "low" },
    { id: "owner", name: t.owner, cell: (quota) => quota.owner, priority: "lowest" },
    ...(may.pause ? [{ id: "actions", name: t.actions, cell: (quota: QuotaOf) => <Actions quota={quota} change={may.change} />, number: true, priority: "low" as const }] : []),
  ];
  return (
    <>
      <PageHeader
        title={name}
        about={t.about}
        actions={
          <>
            <Link className="button" to={withSearch("/audit", { kind: "quota" })}>{t.history}</Link>
            {may.change && <Button look="primary" icon="plus" onClick={() => setAdding(true)}>{t.add}</Button>}
          </>
        }
      />
      <Finder />
      {quotas.error && !quotas.data ? (
        <ProblemNotice problem={quotas.error} onRetry={() => void quotas.refetch()} />
      ) : (
        <Card bare title={t.quotas}>
          <DataTable
            label={t.quotas}
            columns={columns}
            rows={quotas.data?.items}
            rowKey={(quota) => `${quota.kind}/${quota.id ?? ""}`}
            expected={4}
            empty={<EmptyState title={t.emptyTitle} command="rota quota update tenant 42 --max-concurrency 5">{t.emptyAbout}</EmptyState>}
          />
        </Card>
      )}
      {adding && <QuotaDialog quota={null} onClose={() => setAdding(false)} />}
    </>
  );
}

/** Any scope has a page, also without a quota. */
function Finder() {
  const t = useWords(scopesWords);
  const [text, setText] = useState("");
  const open = () => {
    const at = text.trim().indexOf("/");
    if (at > 0 && at < text.trim().length - 1) navigate(scopePath(text.trim().slice(0, at), text.trim().slice(at + 1)));
  };
  return (
    <div className="scopes-finder">
      <SearchBox label={t.find} placeholder={t.findHint} value={text} onChange={setText} onEnter={open} shortcut="/" />
      <Button onClick={open}>{t.show}</Button>
    </div>
  );
}

function Name({ quota }: { quota: QuotaOf }) {
  const t = useWords(scopesWords);
  if (quota.id === null) return <span>{t.eachOf(quota.kind)}</span>;
  return <Link to={scopePath(quota.kind, quota.id)} className="clip">{`${quota.kind}/${quota.id}`}</Link>;
}

function Actions({ quota, change }: { quota: QuotaOf; change: boolean }) {
  const t = useWords(scopesWords);
  const [editing, setEditing] = useState(false);
  const [asking, setAsking] = useState(false);
  const name = quota.id === null ? t.eachOf(quota.kind) : `${quota.kind}/${quota.id}`;
  const drop = useCommand(() => api.delete(`/quotas/${part(quota.kind)}${quota.id === null ? "" : `/${part(quota.id)}`}`), "runs");
  return (
    <span className="row">
      {quota.id !== null && <PauseButton kind={quota.kind} id={quota.id} paused={quota.paused} small />}
      {change && <Button small icon="edit" label={`${t.edit} ${name}`} onClick={() => setEditing(true)} />}
      {change && <Button small look="danger" icon="trash" label={`${t.delete} ${name}`} onClick={() => setAsking(true)} />}
      {editing && <QuotaDialog kind={quota.kind} id={quota.id} quota={quota} onClose={() => setEditing(false)} />}
      {asking && <ConfirmDialog title={t.dropTitle(name)} open danger onClose={() => setAsking(false)} consequence={t.dropAbout} action={t.delete} busy={drop.isPending} problem={drop.error} onConfirm={() => drop.mutate(undefined, { onSuccess: () => setAsking(false) })} />}
    </span>
  );
}

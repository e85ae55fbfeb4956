/** Tokens: who has access, in which role, and since when a token was not used. */
import { useState } from "react";
import { api, part, type Page } from "../../api/client";
import { useCommand, useGet, useMay } from "../../api/hooks";
import type { Token } from "../../api/schema";
import { useWords } from "../../i18n";
import { Link, withSearch } from "../../router";
import { Badge, Button, Card, ConfirmDialog, DataTable, EmptyState, PageHeader, ProblemNotice, Time, useNow, useToasts, type Column } from "../../ui";
import { TokenDialog } from "./TokenDialog";
import { accessWords, viewName } from "./words";

type State = "valid" | "expired" | "revoked";

const stateOf = (token: Token, now: number): State =>
  token.revoked_at ? "revoked" : token.expires_at && Date.parse(token.expires_at) <= now ? "expired" : "valid";

export function AccessPage() {
  const t = useWords(accessWords);
  const name = useWords(viewName).name;
  const may = useMay("admin");
  const [adding, setAdding] = useState(false);
  return (
    <>
      <PageHeader
        title={name}
        about={t.about}
        actions={
          <>
            <Link className="button" to={withSearch("/audit", { kind: "token" })}>{t.history}</Link>
            {may && <Button look="primary" icon="plus" onClick={() => setAdding(true)}>{t.add}</Button>}
          </>
        }
      />
      {may ? <Tokens /> : <Card bare><EmptyState title={t.adminsTitle}>{t.adminsAbout}</EmptyState></Card>}
      {adding && <TokenDialog onClose={() => setAdding(false)} />}
    </>
  );
}

function Tokens() {
  const t = useWords(accessWords);
  const now = useNow();
  // Every write is announced on the topic `runs`.
  const tokens = useGet<Page<Token>>("runs", "/tokens", { limit: 500 }, { rest: 1_000 });
  const columns: Column<Token>[] = [
    { id: "name", name: t.token, cell: (token) => <span className="clip" title={token.id}>{token.name}</span>, sortBy: (token) => token.name, clip: true },
    { id: "role", name: t.role, cell: (token) => token.role, sortBy: (token) => token.role },
    { id: "scope", name: t.scope, cell: (token) => (token.scope ? `${token.scope.kind}/${token.scope.id}` : <span className="quiet">{t.everything}</span>), priority: "low" },
    { id: "state", name: t.state, cell: (token) => <TokenState state={stateOf(token, now)} />, sortBy: (token) => stateOf(token, now) },
    { id: "used", name: t.used, cell: (token) => (token.used_at ? <Time at={token.used_at} /> : <span className="quiet">{t.never}</span>), sortBy: (token) => token.used_at ?? "", priority: "low" },
    { id: "expires", name: t.expires, cell: (token) => (token.expires_at ? <Time at={token.expires_at} /> : <span className="quiet">{t.never}</span>), sortBy: (token) => token.expires_at ?? "9", priority: "low" },
    { id: "created", name: t.created, cell: (token) => <><Time at={token.created_at} /> {token.created_by && <span className="quiet">{t.createdBy(token.created_by)}</span>}</>, sortBy: (token) => token.created_at, priority: "lowest" },
    { id: "actions", name: t.actions, cell: (token) => (stateOf(token, now) === "valid" ? <Revoke token={token} /> : null), number: true },
  ];
  if (tokens.error && !tokens.data) return <ProblemNotice problem={tokens.error} onRetry={() => void tokens.refetch()} />;
  return (
    <Card bare>
      <DataTable
        label={t.tokens}
        columns={columns}
        rows={tokens.data?.items}
        rowKey={(token) => token.id}
        expected={4}
        empty={<EmptyState title={t.emptyTitle} command="rota token create ann --role admin">{t.emptyAbout}</EmptyState>}
      />
    </Card>
  );
}

function TokenState({ state }: { state: State }) {
  const t = useWords(accessWords);
  if (state === "valid") return <Badge tone="good" shape="succeeded">{t.valid}</Badge>;
  return <Badge tone="idle" shape={state === "expired" ? "expired" : "cancelled"}>{t[state]}</Badge>;
}

function Revoke({ token }: { token: Token }) {
  const t = useWords(accessWords);
  const toasts = useToasts();
  const [asking, setAsking] = useState(false);
  const revoke = useCommand(() => api.post<Token>(`/tokens/${part(token.id)}/revoke`), "runs");
  const act = () =>
    revoke.mutate(undefined, {
      onSuccess: () => {
        toasts.say({ text: t.revokeDone(token.name), tone: "good" });
        setAsking(false);
      },
    });
  return (
    <>
      <Button small look="danger" aria-label={`${t.revoke} ${token.name}`} onClick={() => setAsking(true)}>{t.revoke}</Button>
      {asking && <ConfirmDialog title={t.revokeTitle(token.name)} open danger onClose={() => setAsking(false)} consequence={t.revokeAbout} action={t.revoke} busy={revoke.isPending} problem={revoke.error} onConfirm={act} />}
    </>
  );
}

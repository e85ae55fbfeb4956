/** Dialog for the quota of a scope, or of each scope of a kind. It says what a change does before it is made. */
import { useState } from "react";
import { api, part } from "../../api/client";
import { useCommand, useGet } from "../../api/hooks";
import type { Counted, QuotaOf, QuotasUpdateBody } from "../../api/schema";
import { useWords } from "../../i18n";
import { Field, FormDialog, useToasts } from "../../ui";
import { scopesWords } from "./words";

const WHOLE = /^\d{1,9}$/;

interface Props {
  /** Undefined: the user names the scope. */
  kind?: string;
  id?: string | null;
  quota: QuotaOf | null;
  onClose: () => void;
}

export function QuotaDialog({ kind: givenKind, id: givenId, quota, onClose }: Props) {
  const t = useWords(scopesWords);
  const toasts = useToasts();
  const [kind, setKind] = useState(givenKind ?? "");
  const [id, setId] = useState(givenId ?? "");
  const [atOnce, setAtOnce] = useState(String(quota?.max_concurrency ?? ""));
  const [queued, setQueued] = useState(String(quota?.max_queued ?? ""));
  const [rate, setRate] = useState(quota?.rate ?? "");
  const name = id.trim() ? `${kind.trim()}/${id.trim()}` : t.eachOf(kind.trim() || "…");
  const place = `/quotas/${part(kind.trim())}${id.trim() ? `/${part(id.trim())}` : ""}`;
  const save = useCommand((body: QuotasUpdateBody) => api.put<QuotaOf>(place, body), "runs");
  const wrong = (text: string) => (!text.trim() || WHOLE.test(text.trim()) ? null : t.wholeNumber);
  const body: QuotasUpdateBody = {
    ...(atOnce.trim() && { max_concurrency: Number(atOnce) }),
    ...(queued.trim() && { max_queued: Number(queued) }),
    ...(rate.trim() && { rate: rate.trim() }),
  };
  const ready = !!kind.trim() && !wrong(atOnce) && !wrong(queued) && Object.keys(body).length > 0;
  const submit = () =>
    save.mutate(body, {
      onSuccess: () => {
        toasts.say({ text: t.saved(name), tone: "good" });
        onClose();
      },
    });
  return (
    <FormDialog title={givenKind === undefined ? t.addTitle : t.quotaTitle(name)} onClose={onClose} action={t.save} onSubmit={submit} ready={ready} why={t.noNumberGiven} busy={save.isPending} problem={save.error}>
      {givenKind === undefined && (
        <>
          <Field name={t.kind} hint={t.kindHint}>
            <input value={kind} autoFocus spellCheck={false} onChange={(event) => setKind(event.target.value)} />
          </Field>
          <Field name={t.id} hint={t.idHint}>
            <input value={id} spellCheck={false} onChange={(event) => setId(event.target.value)} />
          </Field>
        </>
      )}
      <Field name={t.maxConcurrency} hint={t.maxConcurrencyHint} wrong={wrong(atOnce)}>
        <input value={atOnce} inputMode="numeric" onChange={(event) => setAtOnce(event.target.value)} />
      </Field>
      <Field name={t.rate} hint={t.rateHint}>
        <input value={rate} spellCheck={false} placeholder="1000/1h" onChange={(event) => setRate(event.target.value)} />
      </Field>
      <Field name={t.maxQueued} hint={t.maxQueuedHint} wrong={wrong(queued)}>
        <input value={queued} inputMode="numeric" onChange={(event) => setQueued(event.target.value)} />
      </Field>
      {givenKind !== undefined && givenId && ready && <Effect scope={name} body={body} />}
    </FormDialog>
  );
}

/** What the numbers mean for the runs that are there now. */
function Effect({ scope, body }: { scope: string; body: QuotasUpdateBody }) {
  const t = useWords(scopesWords);
  const running = useGet<Counted>("runs", "/runs:count", { scope, state: ["running", "cancelling"] }, { rest: 2_000 }).data;
  const waiting = useGet<Counted>("runs", "/runs:count", { scope, state: "queued" }, { rest: 2_000 }).data;
  if (!running || !waiting) return null;
  const most = body.max_concurrency;
  return (
    <p className="notice tone-idle" role="status">
      <span>{t.nowThere(running.count, waiting.count)}</span>
      <span>{most === 0 ? t.effectPause : most === undefined || most === null ? t.effectOpen : running.count > most ? t.effectOver(running.count - most, most) : t.effectRoom(most - running.count)}</span>
      {body.max_queued !== undefined && body.max_queued !== null && waiting.count > body.max_queued && <span>{t.effectQueued}</span>}
    </p>
  );
}

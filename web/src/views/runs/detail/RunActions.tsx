/** Actions on a run. */
import { useState } from "react";
import { api, part } from "../../../api/client";
import { writeJson } from "../../../api/json";
import { useCommand, useGet } from "../../../api/hooks";
import type { Run } from "../../../api/schema";
import { useWords } from "../../../i18n";
import { navigate } from "../../../router";
import { Button, ConfirmDialog, Field, FINAL, PayloadForm, useKeys, useToasts, type JsonSchema } from "../../../ui";
import { changesOf } from "./changes";
import { Changes } from "./Comparison";
import { runsWords } from "../words";

export function RunActions({ run }: { run: Run }) {
  const t = useWords(runsWords);
  const [asking, setAsking] = useState<"cancel" | "retry" | null>(null);
  const over = FINAL.has(run.state);
  useKeys({ r: () => over && setAsking("retry"), c: () => !over && run.state !== "cancelling" && setAsking("cancel") });
  return (
    <>
      {over ? (
        <Button icon="retry" onClick={() => setAsking("retry")}>
          {t.retry}
        </Button>
      ) : (
        <Button icon="cancel" look="danger" disabled={run.state === "cancelling"} onClick={() => setAsking("cancel")}>
          {t.cancel}
        </Button>
      )}
      {asking === "cancel" && <CancelDialog run={run} onClose={() => setAsking(null)} />}
      {asking === "retry" && <RetryDialog run={run} onClose={() => setAsking(null)} />}
    </>
  );
}

function CancelDialog({ run, onClose }: { run: Run; onClose: () => void }) {
  const t = useWords(runsWords);
  const toasts = useToasts();
  const [reason, setReason] = useState("");
  const cancel = useCommand((why: string) => api.post<Run>(`/runs/${run.id}/cancel`, why ? { reason: why } : {}), `run:${run.id}`, "runs");
  const confirm = () =>
    cancel.mutate(reason.trim(), {
      onSuccess: (after) => {
        toasts.say(after.state === "cancelling" ? t.cancelAsked : t.cancelDone);
        onClose();
      },
    });
  return (
    <ConfirmDialog title={t.cancelOne(run.job)} open onClose={onClose} consequence={t.cancelAbout} action={t.cancel} danger busy={cancel.isPending} problem={cancel.error} onConfirm={confirm}>
      <Field name={t.reason} hint={t.reasonHint}>
        <input value={reason} maxLength={1000} onChange={(event) => setReason(event.target.value)} />
      </Field>
    </ConfirmDialog>
  );
}

function RetryDialog({ run, onClose }: { run: Run; onClose: () => void }) {
  const t = useWords(runsWords);
  const toasts = useToasts();
  const done = run.progress?.steps?.some((step) => step.state === "succeeded") ?? false;
  const [keep, setKeep] = useState(done && run.state !== "succeeded");
  const [payload, setPayload] = useState<Record<string, unknown> | null | undefined>(undefined);
  const edits = payload !== undefined;
  const retry = useCommand((body: object) => api.post<Run>(`/runs/${run.id}/retry`, body), "runs");
  const wrong = edits && retry.error?.pointer?.startsWith("#/payload") ? retry.error : null;
  const confirm = () =>
    retry.mutate(edits ? { payload } : { keep_steps: keep }, {
      onSuccess: (made) => {
        toasts.say({ text: t.retryDone, tone: "good" });
        onClose();
        navigate(`/runs/${made.id}`);
      },
    });
  return (
    <ConfirmDialog title={t.retryOne(run.job)} open onClose={onClose} consequence={t.retryAbout} action={t.retry} busy={retry.isPending} problem={wrong ? null : retry.error} onConfirm={() => payload !== null && confirm()}>
      {done && !edits && (
        <label className="row">
          <input type="checkbox" checked={keep} onChange={(event) => setKeep(event.target.checked)} />
          {t.keepSteps}
        </label>
      )}
      <label className="row">
        <input
          type="checkbox"
          checked={edits}
          onChange={(event) => {
            retry.reset();
            setPayload(event.target.checked ? ((run.payload as Record<string, unknown> | null) ?? {}) : undefined);
          }}
        />
        {t.editPayload}
      </label>
      {edits && <EditedPayload run={run} payload={payload} onChange={setPayload} wrong={wrong} />}
    </ConfirmDialog>
  );
}

interface EditedProps {
  run: Run;
  payload: Record<string, unknown> | null;
  onChange: (payload: Record<string, unknown> | null) => void;
  wrong: { pointer?: string; detail: string } | null;
}

function EditedPayload({ run, payload, onChange, wrong }: EditedProps) {
  const t = useWords(runsWords);
  const job = useGet<{ payload_schema: JsonSchema | null }>(null, `/jobs/${part(run.job)}`);
  const first = (run.payload as Record<string, unknown> | null) ?? {};
  const [last, setLast] = useState(first);
  if (job.isPending) return <span className="skeleton" style={{ width: "60%" }} />;
  const masked = writeJson(first).includes("\u2026");
  return (
    <div className="stack">
      <PayloadForm
        schema={job.data?.payload_schema}
        value={last}
        wrong={wrong}
        onChange={(next) => {
          if (next) setLast(next);
          onChange(next);
        }}
      />
      {masked && <p className="quiet">{t.maskedStay}</p>}
      {payload && <Changes label={t.edited} changes={changesOf(first, payload)} before={t.before} after={t.after} none={t.notEdited} />}
    </div>
  );
}

/** Actions on a run. */
import { useState } from "react";
import { api } from "../../../api/client";
import { useCommand } from "../../../api/hooks";
import type { Run } from "../../../api/schema";
import { useWords } from "../../../i18n";
import { navigate } from "../../../router";
import { Button, ConfirmDialog, Field, FINAL, useKeys, useToasts } from "../../../ui";
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
  const retry = useCommand((keep_steps: boolean) => api.post<Run>(`/runs/${run.id}/retry`, { keep_steps }), "runs");
  const confirm = () =>
    retry.mutate(keep, {
      onSuccess: (made) => {
        toasts.say({ text: t.retryDone, tone: "good" });
        onClose();
        navigate(`/runs/${made.id}`);
      },
    });
  return (
    <ConfirmDialog title={t.retryOne(run.job)} open onClose={onClose} consequence={t.retryAbout} action={t.retry} busy={retry.isPending} problem={retry.error} onConfirm={confirm}>
      {done && (
        <label className="row">
          <input type="checkbox" checked={keep} onChange={(event) => setKeep(event.target.checked)} />
          {t.keepSteps}
        </label>
      )}
    </ConfirmDialog>
  );
}

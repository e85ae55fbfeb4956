/** The button that pauses or resumes a scope. */
import { useState } from "react";
import { api } from "../../api/client";
import { useCommand } from "../../api/hooks";
import type { QuotaOf, ResumedScope } from "../../api/schema";
import { useWords } from "../../i18n";
import { Button, ConfirmDialog, Field, useToasts } from "../../ui";
import { scopePath } from "./links";
import { scopesWords } from "./words";

export function PauseButton({ kind, id, paused, small = false }: { kind: string; id: string; paused: boolean; small?: boolean }) {
  const t = useWords(scopesWords);
  const toasts = useToasts();
  const [asking, setAsking] = useState(false);
  const [reason, setReason] = useState("");
  const name = `${kind}/${id}`;
  const resume = useCommand(() => api.post<ResumedScope>(`${scopePath(kind, id)}/resume`), "runs");
  const pause = useCommand((why: string) => api.post<QuotaOf>(`${scopePath(kind, id)}/pause`, why ? { reason: why } : {}), "runs");
  const goOn = () => resume.mutate(undefined, { onSuccess: () => toasts.say({ text: t.resumeDone(name), tone: "good" }), onError: toasts.complain });
  const halt = () =>
    pause.mutate(reason.trim(), {
      onSuccess: () => {
        toasts.say({ text: t.pauseDone(name), undo: goOn });
        setAsking(false);
        setReason("");
      },
    });
  return (
    <>
      {paused ? (
        <Button small={small} icon="play" busy={resume.isPending} aria-label={`${t.resume} ${name}`} onClick={goOn}>{t.resume}</Button>
      ) : (
        <Button small={small} icon="pause" aria-label={`${t.pause} ${name}`} onClick={() => setAsking(true)}>{t.pause}</Button>
      )}
      {asking && (
        <ConfirmDialog title={t.pauseTitle(name)} open onClose={() => setAsking(false)} consequence={t.pauseAbout} action={t.pause} busy={pause.isPending} problem={pause.error} onConfirm={halt}>
          <Field name={t.reason} hint={t.reasonHint}>
            <input value={reason} maxLength={1000} onChange={(event) => setReason(event.target.value)} />
          </Field>
        </ConfirmDialog>
      )}
    </>
  );
}

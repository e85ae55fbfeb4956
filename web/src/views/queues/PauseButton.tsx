/** The button that pauses or resumes a queue. */
import { useState } from "react";
import { api, part } from "../../api/client";
import { useCommand } from "../../api/hooks";
import type { Queue } from "../../api/schema";
import { useWords } from "../../i18n";
import { Button, ConfirmDialog, Field, useToasts } from "../../ui";
import { queuesWords } from "./words";

export function PauseButton({ queue, small = false }: { queue: Queue; small?: boolean }) {
  const t = useWords(queuesWords);
  const toasts = useToasts();
  const [asking, setAsking] = useState(false);
  const [reason, setReason] = useState("");
  const name = queue.queue;
  const resume = useCommand(() => api.post(`/queues/${part(name)}/resume`), "queues");
  const pause = useCommand((why: string) => api.post(`/queues/${part(name)}/pause`, why ? { reason: why } : {}), "queues");
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
      {queue.paused ? (
        <Button small={small} icon="play" busy={resume.isPending} aria-label={`${t.resume} ${name}`} onClick={goOn}>{t.resume}</Button>
      ) : (
        <Button small={small} icon="pause" aria-label={`${t.pause} ${name}`} onClick={() => setAsking(true)}>{t.pause}</Button>
      )}
      {asking && (
        <ConfirmDialog title={t.pauseTitle(name)} open onClose={() => setAsking(false)} consequence={t.pauseAbout(queue.queued)} action={t.pause} busy={pause.isPending} problem={pause.error} onConfirm={halt}>
          <Field name={t.reason} hint={t.reasonHint}>
            <input value={reason} maxLength={1000} onChange={(event) => setReason(event.target.value)} />
          </Field>
        </ConfirmDialog>
      )}
    </>
  );
}

/** What both pages know of a queue: how it stands, who serves it, and the switch. */
import { useState } from "react";
import { api, part, type Page } from "../../api/client";
import { useCommand, useGet } from "../../api/hooks";
import type { Queue, Worker } from "../../api/schema";
import { useWords } from "../../i18n";
import { withSearch } from "../../router";
import { Badge, Button, ConfirmDialog, Duration, Field, useToasts } from "../../ui";
import { format } from "../runs/search";
import { queuesWords } from "./words";

export function useQueues() {
  return useGet<Page<Queue>>("queues", "/queues", {}, { rest: 300 });
}

/** Alive, and with this queue among theirs. */
export function useServing(): ((queue: string) => Worker[]) | undefined {
  const workers = useGet<Page<Worker>>("workers", "/workers", {}, { every: 10_000, rest: 1_000 });
  const alive = workers.data?.items.filter((worker) => worker.state === "working" || worker.state === "draining");
  return alive && ((queue) => alive.filter((worker) => queue in worker.queues));
}

export const runsOf = (queue: string, state?: string) =>
  withSearch("/runs", { q: format([...(state ? [{ name: "state", value: state }] : []), { name: "queue", value: queue }]) });

export function QueueBadge({ queue, served }: { queue: Queue; served: boolean }) {
  const t = useWords(queuesWords);
  if (queue.paused) return <Badge tone="warn" shape="waiting">{t.paused}</Badge>;
  if (!served) return <Badge tone={queue.queued ? "bad" : "idle"} shape="expired">{t.unserved}</Badge>;
  return <Badge tone="good" shape="succeeded">{t.open}</Badge>;
}

export function Oldest({ queue }: { queue: Queue }) {
  return queue.oldest_at ? <Duration from={queue.oldest_at} /> : <span className="quiet">–</span>;
}

export function Switch({ queue, small = false }: { queue: Queue; small?: boolean }) {
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

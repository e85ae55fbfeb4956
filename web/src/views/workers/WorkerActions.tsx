/** Actions on a worker. It receives them with its next heartbeat. */
import { useState } from "react";
import { api, part, type Page } from "../../api/client";
import { useCommand } from "../../api/hooks";
import type { Worker } from "../../api/schema";
import { useWords } from "../../i18n";
import { Button, ConfirmDialog, Menu, useToasts } from "../../ui";
import { SettingsDialog } from "./SettingsDialog";
import { workersWords } from "./words";

type Verb = "drain" | "resume" | "stop";
type Asking = "drain" | "stop" | "settings";

/** A worker can be resumed before it has received the request to drain. */
const rests = (worker: Worker) => worker.state === "draining" || worker.asked?.state === "draining";

function useVerb(worker: Worker) {
  const t = useWords(workersWords);
  const toasts = useToasts();
  const command = useCommand((verb: Verb) => api.post<Page<Worker>>(`/workers/${part(worker.id)}/${verb}`), "workers");
  const said: Record<Verb, string> = { drain: t.drained(worker.name), resume: t.resumed(worker.name), stop: t.stopped(worker.name) };
  const ask = (verb: Verb, onSuccess?: () => void) =>
    command.mutate(verb, {
      onSuccess: () => {
        const undo = verb === "drain" ? () => ask("resume") : undefined;
        toasts.say({ text: said[verb], undo });
        onSuccess?.();
      },
      onError: (problem) => verb === "resume" && toasts.complain(problem),
    });
  return { ask, command };
}

function Asked({ asking, worker, onClose }: { asking: Asking | null; worker: Worker; onClose: () => void }) {
  const t = useWords(workersWords);
  const { ask, command } = useVerb(worker);
  if (asking === "settings") return <SettingsDialog worker={worker} onClose={onClose} />;
  if (!asking) return null;
  const stop = asking === "stop";
  return (
    <ConfirmDialog
      title={stop ? t.stopTitle(worker.name) : t.drainTitle(worker.name)}
      open
      onClose={onClose}
      consequence={stop ? t.stopAbout(worker.held) : t.drainAbout(worker.held)}
      action={stop ? t.stop : t.drain}
      danger={stop}
      busy={command.isPending}
      problem={command.error}
      onConfirm={() => ask(asking, onClose)}
    />
  );
}

export function WorkerActions({ worker }: { worker: Worker }) {
  const t = useWords(workersWords);
  const [asking, setAsking] = useState<Asking | null>(null);
  const { ask, command } = useVerb(worker);
  if (worker.state === "gone") return null;
  return (
    <>
      <Button icon="edit" onClick={() => setAsking("settings")}>{t.settings}</Button>
      {rests(worker) ? (
        <Button icon="play" busy={command.isPending} onClick={() => ask("resume")}>{t.resume}</Button>
      ) : (
        <Button icon="pause" disabled={worker.state === "stopping"} onClick={() => setAsking("drain")}>{t.drain}</Button>
      )}
      <Button icon="cancel" look="danger" disabled={worker.state === "stopping"} onClick={() => setAsking("stop")}>{t.stop}</Button>
      <Asked asking={asking} worker={worker} onClose={() => setAsking(null)} />
    </>
  );
}

export function WorkerMenu({ worker }: { worker: Worker }) {
  const t = useWords(workersWords);
  const [asking, setAsking] = useState<Asking | null>(null);
  const { ask } = useVerb(worker);
  if (worker.state === "gone") return null;
  const over = worker.state === "stopping";
  return (
    <>
      <Menu
        label={`${t.actions}: ${worker.name}`}
        icon="chevron"
        entries={[
          rests(worker) ? { id: "resume", name: t.resume } : { id: "drain", name: t.drain, disabled: over },
          { id: "settings", name: t.settings },
          { id: "stop", name: t.stop, danger: true, disabled: over },
        ]}
        onAction={(id) => (id === "resume" ? ask("resume") : setAsking(id as Asking))}
      />
      <Asked asking={asking} worker={worker} onClose={() => setAsking(null)} />
    </>
  );
}

/** Dialog for the settings of a running worker. */
import { useState } from "react";
import { api, part, type Page } from "../../api/client";
import { useCommand } from "../../api/hooks";
import type { Worker, WorkersUpdateBody } from "../../api/schema";
import { useWords } from "../../i18n";
import { Field, FormDialog, useToasts } from "../../ui";
import { workersWords } from "./words";

const written = (queues: Record<string, number>) =>
  Object.entries(queues)
    .map(([name, weight]) => (weight === 1 ? name : `${name}=${weight}`))
    .join(" ");

/** Parse `default mail=3`; return null if it is not valid. */
function queuesOf(text: string): Record<string, number> | null {
  const found: Record<string, number> = {};
  for (const word of text.split(/[\s,]+/).filter(Boolean)) {
    const at = word.lastIndexOf("=");
    const [name, weight] = at < 0 ? [word, 1] : [word.slice(0, at), Number(word.slice(at + 1))];
    if (!name || !Number.isInteger(weight) || weight < 1) return null;
    found[name] = weight;
  }
  return Object.keys(found).length ? found : null;
}

export function SettingsDialog({ worker, onClose }: { worker: Worker; onClose: () => void }) {
  const t = useWords(workersWords);
  const toasts = useToasts();
  const [before] = useState({ slots: String(worker.slots), queues: written(worker.queues), heartbeat: worker.heartbeat ?? "", poll: worker.poll ?? "" });
  const [now, setNow] = useState(before);
  const save = useCommand((body: WorkersUpdateBody) => api.patch<Page<Worker>>(`/workers/${part(worker.id)}`, body), "workers");
  const slots = Number(now.slots);
  const queues = queuesOf(now.queues);
  const wrongSlots = Number.isInteger(slots) && slots >= 1 && slots <= 10_000 ? null : t.wrongSlots;
  const wrongQueues = queues ? null : t.wrongQueues;
  const body: WorkersUpdateBody = {
    ...(now.slots !== before.slots && { slots }),
    ...(now.queues !== before.queues && queues && { queues }),
    ...(now.heartbeat.trim() !== before.heartbeat && { heartbeat: now.heartbeat.trim() }),
    ...(now.poll.trim() !== before.poll && { poll: now.poll.trim() }),
  };
  const changed = Object.keys(body).length > 0;
  const submit = () =>
    save.mutate(body, {
      onSuccess: () => {
        toasts.say({ text: t.saved(worker.name), tone: "good" });
        onClose();
      },
    });
  const field = (name: keyof typeof now) => ({
    value: now[name],
    spellCheck: false,
    onChange: (event: { target: { value: string } }) => setNow({ ...now, [name]: event.target.value }),
  });
  return (
    <FormDialog
      title={t.settingsTitle(worker.name)}
      onClose={onClose}
      action={t.save}
      onSubmit={submit}
      ready={changed && !wrongSlots && !wrongQueues}
      why={changed ? undefined : t.nothingChanged}
      busy={save.isPending}
      problem={save.error}
    >
      <p className="quiet">{t.settingsAbout}</p>
      <Field name={t.slots} hint={t.slotsHint} wrong={wrongSlots}>
        <input inputMode="numeric" autoFocus {...field("slots")} />
      </Field>
      <Field name={t.queues} hint={t.queuesHint} wrong={wrongQueues}>
        <input {...field("queues")} />
      </Field>
      <Field name={t.heartbeat} hint={t.spanHint}>
        <input {...field("heartbeat")} />
      </Field>
      <Field name={t.poll} hint={t.spanHint}>
        <input {...field("poll")} />
      </Field>
    </FormDialog>
  );
}

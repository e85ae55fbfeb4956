/** Dialog that leaves an item alone for a while, with a reason that everybody sees. */
import { useState } from "react";
import { api } from "../../api/client";
import { useCommand } from "../../api/hooks";
import type { Attention } from "../../api/schema";
import { useWords } from "../../i18n";
import { Field, FormDialog, useToasts } from "../../ui";
import { attentionWords, kindWords, LENGTHS, nameOf } from "./attentionWords";

export function SnoozeDialog({ item, onClose }: { item: Attention; onClose: () => void }) {
  const t = useWords(attentionWords);
  const name = nameOf(useWords(kindWords), item.kind);
  const toasts = useToasts();
  const [length, setLength] = useState<string>("4h");
  const [reason, setReason] = useState("");
  const { kind, subject } = item;
  const undo = useCommand(() => api.post("/attention:unsnooze", { kind, subject }), "runs");
  const snooze = useCommand(() => api.post("/attention:snooze", { kind, subject, length, reason: reason.trim() || null }), "runs");
  const submit = () =>
    snooze.mutate(undefined, {
      onSuccess: () => {
        onClose();
        toasts.say({ text: t.snoozeDone(name), undo: () => undo.mutate(undefined, { onError: toasts.complain }) });
      },
    });
  return (
    <FormDialog title={t.snoozeOf(`${name} ${subject ?? ""}`.trim())} onClose={onClose} action={t.snooze} onSubmit={submit} ready busy={snooze.isPending} problem={snooze.error}>
      <p>{t.snoozeAbout}</p>
      <Field name={t.length}>
        <select value={length} onChange={(event) => setLength(event.target.value)}>
          {LENGTHS.map((each) => (
            <option key={each} value={each}>{t[each]}</option>
          ))}
        </select>
      </Field>
      <Field name={t.reason} hint={t.reasonHint}>
        <input value={reason} maxLength={1000} autoFocus onChange={(event) => setReason(event.target.value)} />
      </Field>
    </FormDialog>
  );
}

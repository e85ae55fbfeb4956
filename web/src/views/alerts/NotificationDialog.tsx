/** Dialog for a new notification. */
import { useState } from "react";
import { api } from "../../api/client";
import { useCommand } from "../../api/hooks";
import type { NotificationView, NotificationsCreateBody } from "../../api/schema";
import { useWords } from "../../i18n";
import { ChoiceChips, Field, FormDialog, useToasts } from "../../ui";
import { alertsWords, EVENTS, eventWords } from "./words";

const list = (text: string) => text.split(/[\s,]+/).filter(Boolean);

export function NotificationDialog({ onClose }: { onClose: () => void }) {
  const t = useWords(alertsWords);
  const events = useWords(eventWords);
  const toasts = useToasts();
  const [name, setName] = useState("");
  const [to, setTo] = useState("");
  const [on, setOn] = useState<(typeof EVENTS)[number][]>(["failure", "breached", "met"]);
  const [jobs, setJobs] = useState("");
  const [schedules, setSchedules] = useState("");
  const [secret, setSecret] = useState("");
  const create = useCommand((body: NotificationsCreateBody) => api.post<NotificationView>("/notifications", body), "runs");
  const body: NotificationsCreateBody = {
    name: name.trim(),
    to: to.trim(),
    on,
    ...(list(jobs).length && { jobs: list(jobs) }),
    ...(list(schedules).length && { schedules: list(schedules) }),
    ...(secret && { secret }),
  };
  const submit = () =>
    create.mutate(body, {
      onSuccess: () => {
        toasts.say({ text: t.added(body.name), tone: "good" });
        onClose();
      },
    });
  const typed = (value: string, set: (value: string) => void) => ({ value, spellCheck: false, autoComplete: "off", onChange: (event: { target: { value: string } }) => set(event.target.value) });
  return (
    <FormDialog title={t.addNotification} onClose={onClose} action={t.create} onSubmit={submit} ready={!!body.name && !!body.to && on.length > 0} busy={create.isPending} problem={create.error}>
      <Field name={t.name}>
        <input autoFocus {...typed(name, setName)} />
      </Field>
      <Field name={t.to} hint={t.toHint}>
        <input placeholder="https://example.com/hook" {...typed(to, setTo)} />
      </Field>
      <ChoiceChips label={t.events} choices={EVENTS.map((id) => ({ id, name: events[id] }))} chosen={on} onChange={setOn} />
      <Field name={t.jobs} hint={t.namesHint}>
        <input {...typed(jobs, setJobs)} />
      </Field>
      <Field name={t.schedules} hint={t.namesHint}>
        <input {...typed(schedules, setSchedules)} />
      </Field>
      <Field name={t.secret} hint={t.secretHint}>
        <input type="password" {...typed(secret, setSecret)} autoComplete="new-password" />
      </Field>
    </FormDialog>
  );
}

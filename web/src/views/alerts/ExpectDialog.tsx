/** Dialog for the expectations of a job or a schedule. */
import { useState } from "react";
import { api, part } from "../../api/client";
import { useCommand } from "../../api/hooks";
import type { Expected, ExpectationsUpdateBody } from "../../api/schema";
import { useWords } from "../../i18n";
import { Field, FormDialog, useToasts } from "../../ui";
import { alertsWords, optionHints, optionWords } from "./words";

const OPTIONS = ["success_every", "start_within", "finish_within", "max_duration", "max_consecutive_failures", "min_success_rate", "over", "at_least"] as const;
const WHOLE: readonly string[] = ["max_consecutive_failures", "over", "at_least"];
type Option = (typeof OPTIONS)[number];

export function ExpectDialog({ expected, onClose }: { expected: Expected | null; onClose: () => void }) {
  const t = useWords(alertsWords);
  const names = useWords(optionWords);
  const hints = useWords(optionHints);
  const toasts = useToasts();
  const [kind, setKind] = useState(expected?.kind ?? "schedule");
  const [subject, setSubject] = useState(expected?.subject ?? "");
  const [values, setValues] = useState(() => Object.fromEntries(OPTIONS.map((option) => [option, String(expected?.expect[option] ?? "")])) as Record<Option, string>);
  const save = useCommand((body: ExpectationsUpdateBody) => api.put<Expected>(`/expectations/${kind}/${part(subject.trim())}`, body), "runs");
  const given = OPTIONS.filter((option) => values[option].trim());
  const body = Object.fromEntries(given.map((option) => [option, WHOLE.includes(option) ? Number(values[option]) : values[option].trim()]));
  const wrong = given.find((option) => WHOLE.includes(option) && !Number.isInteger(body[option]));
  const submit = () =>
    save.mutate(body, {
      onSuccess: () => {
        toasts.say({ text: t.expectationsSaved(subject.trim()), tone: "good" });
        onClose();
      },
    });
  return (
    <FormDialog title={expected ? t.expectTitle(expected.subject) : t.expect} onClose={onClose} action={t.save} onSubmit={submit} ready={!!subject.trim() && given.length > 0 && !wrong} why={t.nothingExpected} busy={save.isPending} problem={save.error}>
      {!expected && (
        <>
          <Field name={t.of}>
            <select value={kind} onChange={(event) => setKind(event.target.value)}>
              <option value="schedule">{t.schedule}</option>
              <option value="job">{t.job}</option>
            </select>
          </Field>
          <Field name={t.name}>
            <input value={subject} autoFocus spellCheck={false} onChange={(event) => setSubject(event.target.value)} />
          </Field>
        </>
      )}
      {OPTIONS.map((option) => (
        <Field key={option} name={names[option]} hint={hints[option]} wrong={wrong === option ? t.wholeNumber : null}>
          <input value={values[option]} spellCheck={false} onChange={(event) => setValues({ ...values, [option]: event.target.value })} />
        </Field>
      ))}
    </FormDialog>
  );
}

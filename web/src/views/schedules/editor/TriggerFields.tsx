/** Form fields of the trigger and its bounds. */
import { useMemo, useState } from "react";
import { parseJson, writeJson } from "../../../api/json";
import { useWords } from "../../../i18n";
import { Field } from "../../../ui";
import { editorWords } from "./words";
import { kindOf, TRIGGERS, withKind, type Form, type Kind } from "./form";
import { Choice, Lines, DateTime, Text } from "./inputs";

export function TriggerFields({ form, jobs }: { form: Form; jobs: string[] }) {
  const t = useWords(editorWords);
  const kind = kindOf(form.document);
  const bounded = ["start_at", "end_at", "windows", "exclude"].some((key) => form.document[key] !== undefined);
  return (
    <div className="stack">
      <Field name={t.kind}>
        <select value={kind} onChange={(event) => form.set(withKind(form.document, event.target.value as Kind))}>
          {TRIGGERS.map((each) => (
            <option key={each} value={each}>
              {t[`kind_${each}`]}
            </option>
          ))}
        </select>
      </Field>
      <TriggerInputs kind={kind} form={form} jobs={jobs} />
      <details open={bounded || undefined}>
        <summary>{t.bounds}</summary>
        <div className="schedules-fields">
          <DateTime form={form} k="start_at" name={t.start_at} hint={t.browserZone} />
          <DateTime form={form} k="end_at" name={t.end_at} />
          <Lines form={form} k="windows" name={t.windows} hint={t.windowsHint} />
          <Lines form={form} k="exclude" name={t.exclude} hint={t.excludeHint} />
          {kind !== "cron" && <Zone form={form} />}
        </div>
      </details>
    </div>
  );
}

function TriggerInputs({ kind, form, jobs }: { kind: Kind; form: Form; jobs: string[] }) {
  const t = useWords(editorWords);
  switch (kind) {
    case "cron":
      return (
        <>
          <div className="schedules-fields">
            <Text form={form} k="cron" name={t.cron} hint={t.cronHint} placeholder="0 9 * * MON-FRI" mono />
            <Zone form={form} />
          </div>
          {form.document.timezone !== undefined && (
            <div className="schedules-fields">
              <Choice form={form} k="gap" name={t.gap} usual="after" choices={[["after", t.gap_after], ["skip", t.gap_skip]]} />
              <Choice form={form} k="fold" name={t.fold} usual="first" choices={[["first", t.fold_first], ["last", t.fold_last], ["both", t.fold_both]]} />
            </div>
          )}
        </>
      );
    case "every":
      return (
        <div className="schedules-fields">
          <Text form={form} k="every" name={t.every} hint={t.everyHint} placeholder="30m" />
          <DateTime form={form} k="anchor" name={t.anchor} hint={t.browserZone} />
        </div>
      );
    case "after":
      return <Text form={form} k="after" name={t.after} hint={t.afterHint} placeholder="5m" />;
    case "following":
      return (
        <div className="schedules-fields">
          <Choice form={form} k="following" name={t.following} usual="" choices={[["", t.chooseJob], ...jobs.map((job) => [job, job] as const)]} />
          <Choice form={form} k="on" name={t.on} usual="success" choices={[["success", t.on_success], ["failure", t.on_failure], ["end", t.on_end]]} />
        </div>
      );
    case "once":
      return <DateTime form={form} k="once" name={t.once} hint={t.browserZone} />;
    default:
      return <EitherField form={form} />;
  }
}

function Zone({ form }: { form: Form }) {
  const t = useWords(editorWords);
  const zones = useMemo(() => Intl.supportedValuesOf("timeZone"), []);
  return (
    <>
      <Text form={form} k="timezone" name={t.timezone} placeholder="UTC" list="schedules-zones" />
      <datalist id="schedules-zones">
        {zones.map((zone) => (
          <option key={zone} value={zone} />
        ))}
      </datalist>
    </>
  );
}

function EitherField({ form }: { form: Form }) {
  const t = useWords(editorWords);
  const [text, setText] = useState(() => writeJson(form.document.either ?? [], 2));
  const [bad, setBad] = useState(false);
  return (
    <Field name={t.either} hint={t.eitherHint} wrong={bad ? t.notJson : form.wrong("either")}>
      <textarea
        value={text}
        rows={5}
        spellCheck={false}
        onChange={(event) => {
          setText(event.target.value);
          try {
            form.set({ either: parseJson(event.target.value) });
            setBad(false);
          } catch {
            setBad(true);
          }
        }}
      />
    </Field>
  );
}

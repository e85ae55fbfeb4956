/** Form fields of the policies, limits and run options. */
import { useWords } from "../../../i18n";
import { Field } from "../../../ui";
import { editorWords } from "./words";
import { withMode, withPart, type Form } from "./form";
import { Choice, Lines, Text, Integer } from "./inputs";
import { CATCH_UPS, FAILURES, FULLS, OVERLAPS } from "../modes";
import { modeOf, policyWords } from "../policies";

interface ModeProps {
  form: Form;
  k: string;
  name: string;
  usual: string;
  choices: readonly (readonly [id: string, name: string])[];
  /** Additional fields of each mode. */
  parts: Record<string, readonly (readonly [field: string, name: string, usual: string])[]>;
}

function ModeField({ form, k, name, usual, choices, parts }: ModeProps) {
  const value = form.document[k];
  const policy = modeOf(value, usual);
  return (
    <div className="schedules-mode">
      <Field name={name} wrong={form.wrong(k)}>
        <select value={policy.mode} onChange={(event) => form.set({ [k]: withMode(value, event.target.value, usual) })}>
          {choices.map(([id, each]) => (
            <option key={id} value={id}>
              {each}
            </option>
          ))}
        </select>
      </Field>
      {(parts[policy.mode] ?? []).map(([field, partName, placeholder]) => {
        const whole = /^\d*$/.test(placeholder);
        return (
          <Field key={field} name={partName}>
            <input
              type={whole ? "number" : "text"}
              value={policy[field] === undefined ? "" : String(policy[field])}
              placeholder={placeholder || "–"}
              onChange={(event) => form.set({ [k]: withPart(value, usual, field, event.target.value && whole ? Number(event.target.value) : event.target.value) })}
            />
          </Field>
        );
      })}
    </div>
  );
}

export function PolicyFields({ form }: { form: Form }) {
  const t = useWords(editorWords);
  const p = useWords(policyWords);
  const late = modeOf(form.document.catch_up, "latest");
  const text = (part: unknown, usual: string) => String(part ?? usual);
  const usualOverlap = late.mode === "all" || form.document.following !== undefined ? "queue_all" : "skip";
  const failure = modeOf(form.document.failure, "run_new");
  const lateness = { latest: p.late_latest(text(late.window, "24h")), all: p.late_all(text(late.window, "24h"), text(late.keep, "1000")), none: p.late_none(text(late.grace, "60s")) };
  const failed = (mode: (typeof FAILURES)[number]) => (mode === "half_open" ? p.failure_half_open(text(failure.threshold, "5"), text(failure.cooldown, "5m")) : p[`failure_${mode}`]);
  const waits = form.document.after !== undefined || form.document.following !== undefined;
  return (
    <div className="stack">
      <ModeField form={form} k="overlap" name={t.overlap} usual={usualOverlap} choices={OVERLAPS.map((mode) => [mode, p[`overlap_${mode}`]])} parts={{ parallel: [["max_overlap", t.max_overlap, ""]] }} />
      {!waits && (
        <ModeField
          form={form}
          k="catch_up"
          name={t.catch_up}
          usual="latest"
          choices={CATCH_UPS.map((mode) => [mode, lateness[mode]])}
          parts={{ latest: [["window", t.window, "24h"]], all: [["window", t.window, "24h"], ["keep", t.keep, "1000"]], none: [["grace", t.grace, "60s"]] }}
        />
      )}
      <ModeField
        form={form}
        k="failure"
        name={t.failure}
        usual="run_new"
        choices={FAILURES.map((mode) => [mode, failed(mode)])}
        parts={{ half_open: [["threshold", t.threshold, "5"], ["cooldown", t.cooldown, "5m"]], retry: [["max_attempts", t.max_attempts, ""]] }}
      />
      <div className="schedules-fields">
        <Text form={form} k="delay" name={t.delay} placeholder="0s" />
        <Text form={form} k="jitter" name={t.jitter} placeholder="0s" />
        <Integer form={form} k="max_concurrency" name={t.max_concurrency} placeholder={t.noLimit} />
        {form.document.max_concurrency !== undefined && <Choice form={form} k="when_full" name={t.when_full} usual="queue" choices={FULLS.map((mode) => [mode, p[`full_${mode}`]])} />}
        <Text form={form} k="rate" name={t.rate} hint={t.rateHint} placeholder={t.noLimit} />
        <Integer form={form} k="max_runs" name={t.max_runs} placeholder={t.noLimit} />
      </div>
    </div>
  );
}

export function RunFields({ form }: { form: Form }) {
  const t = useWords(editorWords);
  const { tags, scopes } = form.document;
  return (
    <div className="stack">
      <div className="schedules-fields">
        <Text form={form} k="queue" name={t.queue} placeholder={t.jobs} />
        <Integer form={form} k="priority" name={t.priority} placeholder={t.jobs} />
        <Text form={form} k="timeout" name={t.timeout} placeholder={t.jobs} />
        <Integer form={form} k="max_attempts" name={t.max_attempts} placeholder={t.jobs} />
        <Field name={t.tags} hint={t.tagsHint} wrong={form.wrong("tags")}>
          <input value={Array.isArray(tags) ? tags.join(",") : ""} onChange={(event) => form.set({ tags: event.target.value ? event.target.value.split(",").map((tag) => tag.trimStart()) : undefined })} />
        </Field>
      </div>
      {typeof scopes === "string" ? <Text form={form} k="scopes" name={t.scopes} hint={t.scopesHint} /> : <Lines form={form} k="scopes" name={t.scopes} hint={t.scopesHint} />}
    </div>
  );
}

/** Inputs of the editor. Each one edits one key of the document. */
import type { ReactNode } from "react";
import { Field } from "../../../ui";
import { instantOf, localOf, type Form } from "./form";

interface InputProps {
  form: Form;
  k: string;
  name: string;
  hint?: ReactNode;
  placeholder?: string;
}

export function Text({ form, k, name, hint, placeholder, mono, list }: InputProps & { mono?: boolean; list?: string }) {
  const value = form.document[k];
  return (
    <Field name={name} hint={hint} wrong={form.wrong(k)}>
      <input
        className={mono ? "input mono" : "input"}
        value={value === undefined ? "" : String(value)}
        placeholder={placeholder}
        list={list}
        spellCheck={false}
        autoComplete="off"
        onChange={(event) => form.set({ [k]: event.target.value || undefined })}
      />
    </Field>
  );
}

export function Integer({ form, k, name, hint, placeholder }: InputProps) {
  const value = form.document[k];
  return (
    <Field name={name} hint={hint} wrong={form.wrong(k)}>
      <input type="number" value={value === undefined ? "" : String(value)} placeholder={placeholder} onChange={(event) => form.set({ [k]: event.target.value ? Number(event.target.value) : undefined })} />
    </Field>
  );
}

export function DateTime({ form, k, name, hint }: InputProps) {
  return (
    <Field name={name} hint={hint} wrong={form.wrong(k)}>
      <input type="datetime-local" value={localOf(form.document[k])} onChange={(event) => form.set({ [k]: instantOf(event.target.value) ?? (k === "once" ? "" : undefined) })} />
    </Field>
  );
}

export function Lines({ form, k, name, hint, rows = 3 }: InputProps & { rows?: number }) {
  const value = form.document[k];
  const text = Array.isArray(value) ? value.map(String).join("\n") : value === undefined ? "" : String(value);
  return (
    <Field name={name} hint={hint} wrong={form.wrong(k)}>
      <textarea className="input schedules-lines" rows={rows} value={text} spellCheck={false} onChange={(event) => form.set({ [k]: event.target.value ? event.target.value.split("\n") : undefined })} />
    </Field>
  );
}

export function Choice({ form, k, name, hint, choices, usual }: InputProps & { choices: readonly (readonly [id: string, name: string])[]; usual: string }) {
  return (
    <Field name={name} hint={hint} wrong={form.wrong(k)}>
      <select value={String(form.document[k] ?? usual)} onChange={(event) => form.set({ [k]: event.target.value === usual ? undefined : event.target.value })}>
        {choices.map(([id, each]) => (
          <option key={id} value={id}>
            {each}
          </option>
        ))}
      </select>
    </Field>
  );
}

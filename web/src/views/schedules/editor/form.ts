/** State of the schedule form: fields, errors and differences. */
import { writeJson } from "../../../api/json";
import type { Problem } from "../../../api/problem";
import { modeOf } from "../policies";
import type { Document } from "../types";

export const TRIGGERS = ["cron", "every", "after", "following", "once", "either"] as const;
export type Kind = (typeof TRIGGERS)[number];
const DETAILS = ["gap", "fold", "anchor", "on"];
const KEYS = [...TRIGGERS, ...DETAILS, "name", "job", "timezone", "payload", "scopes", "delay", "jitter", "catch_up", "overlap", "failure", "max_concurrency", "when_full", "max_queued", "rate", "max_runs", "expect", "start_at", "end_at", "windows", "exclude", "enabled", "description", "queue", "priority", "timeout", "max_attempts", "backoff", "tags", "metadata"];

export interface Form {
  document: Document;
  /** Set keys; `undefined` removes a key, which restores its default. */
  set: (changes: Document) => void;
  wrong: (key: string) => string | null;
}

export const kindOf = (document: Document): Kind => TRIGGERS.find((kind) => document[kind] !== undefined) ?? "cron";

/** Return the changes that switch to another trigger and remove the keys of the previous one. */
export function withKind(document: Document, kind: Kind): Document {
  const gone = Object.fromEntries([...TRIGGERS, ...DETAILS].map((key) => [key, undefined]));
  return { ...gone, [kind]: kind === "either" ? [] : "", ...(kind === "cron" ? {} : { timezone: document.windows || document.exclude ? document.timezone : undefined }) };
}

/** Return the document to send, without empty values. */
export function cleaned(document: Document): Document {
  const lists = ["windows", "exclude", "tags", "scopes"];
  const tidied = Object.entries(document).map(([key, value]) => {
    if (!lists.includes(key) || !Array.isArray(value)) return [key, value] as const;
    const some = value.map((one) => (typeof one === "string" ? one.trim() : (one as unknown))).filter((one) => one !== "");
    // A single word is the name of a scope provider.
    return [key, key === "scopes" && some.length === 1 && typeof some[0] === "string" && !some[0].includes("/") ? some[0] : some] as const;
  });
  return Object.fromEntries(tidied.filter(([, value]) => value !== undefined && value !== "" && !(Array.isArray(value) && !value.length)));
}

export const isReady = (document: Document) => {
  const trigger = document[kindOf(document)];
  return trigger !== undefined && trigger !== "" && !(Array.isArray(trigger) && !trigger.length);
};

/** Return the policy with another mode. A mode without options is a plain string. */
export function withMode(value: unknown, mode: string, usual: string): unknown {
  return mode === usual || modeOf(value, usual).mode === mode ? (mode === usual ? undefined : value) : mode;
}

export function withPart(value: unknown, usual: string, field: string, part: unknown): unknown {
  const { [field]: _, ...rest } = modeOf(value, usual);
  const next = part === undefined || part === "" ? rest : { ...rest, [field]: part };
  return Object.keys(next).length === 1 ? (next.mode === usual ? undefined : next.mode) : next;
}

export interface Difference {
  key: string;
  before: unknown;
  after: unknown;
}

export function differences(before: Document, after: Document): Difference[] {
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const place = (key: string) => (KEYS.includes(key) ? KEYS.indexOf(key) : KEYS.length);
  return keys
    .filter((key) => written(before[key]) !== written(after[key]))
    .sort((one, other) => place(one) - place(other))
    .map((key) => ({ key, before: before[key], after: after[key] }));
}

export const written = (value: unknown) => (value === undefined ? "" : typeof value === "string" ? value : writeJson(value, 2));

/** Return the field that an error is about, from its pointer or the first word of its message. */
export function keyOf(problem: Problem): string | null {
  if (problem.code === "bad-payload") return "payload";
  const pointed = problem.pointer?.replace(/^#\//, "").split("/")[0];
  if (pointed && KEYS.includes(pointed)) return pointed;
  const said = problem.detail.replace(/^(?:schedule '[^']*'|a schedule) ?:? */, "");
  const told = /^(?:[a-z_]+: )?[a-z_]+/.exec(said)?.[0].split(": ").filter((word) => KEYS.includes(word));
  return told?.[told.length - 1] ?? (problem.code === "duplicate-schedule" ? "name" : problem.code === "unknown-job" ? "job" : null);
}

/** Remove the schedule and field names from an error message, for display at the field. */
export const told = (detail: string) => detail.replace(/^(?:schedule '[^']*'|a schedule) ?:? */, "").replace(/^[a-z_]+: (?=.)/, "");

/** Convert an instant for `<input type="datetime-local">`, and back. */
export const localOf = (value: unknown): string => {
  const at = typeof value === "string" && value ? new Date(value) : null;
  return at && !Number.isNaN(at.getTime()) ? new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16) : "";
};
export const instantOf = (value: string): string | undefined => (value ? new Date(value).toISOString().replace(/\.000Z$/, "Z") : undefined);

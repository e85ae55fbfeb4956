/** Search syntax: `state:failed job:crawl since:2h "hung up"`. Parse it, format it and convert it to API parameters. */
import type { Parameters } from "../../api/client";
import type { RunState } from "../../api/schema";
import { STATES } from "../../ui";

export interface Token {
  /** Null for plain words. */
  name: string | null;
  value: string;
}

export const NAMES = ["state", "job", "queue", "schedule", "worker", "tag", "key", "scope", "parent", "error", "fingerprint", "retried", "since", "until"];
const TOKEN = /(?:([\w.-]+):)?(?:"((?:[^"\\]|\\.)*)"|(\S+))/g;
const SPAN = /^(\d+(?:\.\d+)?)(s|m|h|d|w)$/;
const SECONDS: Record<string, number> = { s: 1, m: 60, h: 3_600, d: 86_400, w: 604_800 };
export const LIVE: RunState[] = ["scheduled", "queued", "running", "waiting", "cancelling"];
export const RETRYABLE: RunState[] = ["failed", "timed_out", "expired", "cancelled"];

const known = (name: string) => NAMES.includes(name) || /^payload\.[\w.-]+$/.test(name);

export function parse(text: string): Token[] {
  return [...text.matchAll(TOKEN)].map(([whole, name, quoted, plain]) => {
    const value = quoted === undefined ? (plain ?? "") : quoted.replace(/\\(.)/g, "$1");
    return name === undefined || known(name) ? { name: name ?? null, value } : { name: null, value: whole };
  });
}

export function format(tokens: Token[]): string {
  return tokens.map(({ name, value }) => (name ? `${name}:${quoted(value)}` : quoted(value))).join(" ");
}

export function quoted(value: string): string {
  return /^[^\s"\\]+$/.test(value) ? value : `"${value.replace(/["\\]/g, "\\$&")}"`;
}

export const statesOf = (tokens: Token[]): RunState[] =>
  tokens.filter((token) => token.name === "state").map((token) => token.value as RunState);

export function withStates(tokens: Token[], states: RunState[]): Token[] {
  return [...states.map((value) => ({ name: "state", value })), ...tokens.filter((token) => token.name !== "state")];
}

/** Set the token of a name, or remove it if the value is null. */
export function withToken(tokens: Token[], name: string, value: string | null): Token[] {
  const rest = tokens.filter((token) => token.name !== name);
  return value ? [...rest, { name, value }] : rest;
}

export interface ParsedSearch {
  /** Parameters for GET /runs and GET /runs:count. */
  query: Parameters;
  /** First token that is not valid. */
  wrong: Token | null;
}

export function toQuery(tokens: Token[], now = Date.now()): ParsedSearch {
  const query: Record<string, string | string[]> = {};
  let wrong: Token | null = null;
  const words: string[] = [];
  for (const token of tokens) {
    const { name, value } = token;
    if (name === null) words.push(value);
    else if (name === "state") {
      if (STATES.includes(value as RunState)) query.state = [...((query.state as string[]) ?? []), value];
      else wrong ??= token;
    } else if (name === "since" || name === "until") {
      const at = instant(value, now);
      if (at === null) wrong ??= token;
      else query[name === "since" ? "created_after" : "created_before"] = at;
    } else query[name] = value;
  }
  if (words.length) query.error = [query.error, ...words].filter(Boolean).join(" ");
  return { query, wrong };
}

/** Parse `2h` (ago) or a time. Round to the minute, so that the query key stays the same. */
function instant(text: string, now: number): string | null {
  const span = SPAN.exec(text);
  if (span) {
    const at = now - Number(span[1]) * SECONDS[span[2]!]! * 1_000;
    return new Date(Math.floor(at / 60_000) * 60_000).toISOString();
  }
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : new Date(at).toISOString();
}

/** Convert the query to the filter in the body of `/runs:bulk`. */
export function filterOf(query: Parameters): Record<string, unknown> {
  return Object.fromEntries(Object.entries(query).map(([name, value]) => [name, name === "retried" ? value === "true" : value]));
}

/** Writes a scope as `kind/id`, as the filter of runs reads it: a slash in the kind is `%2F`. */
export const scopeText = (scope: { kind: string; id: string }) => `${scope.kind.replaceAll("%", "%25").replaceAll("/", "%2F")}/${scope.id}`;

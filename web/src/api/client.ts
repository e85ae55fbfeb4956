/** HTTP client of the API. */
import { parseJson, writeJson } from "./json";
import { Problem, type ProblemFacts } from "./problem";

export type Parameter = string | number | boolean | readonly string[] | null | undefined;
export type Parameters = Record<string, Parameter>;

export interface Page<T> {
  items: T[];
  next_cursor: string | null;
}

/** Answer with its `ETag`, the revision to send with `ifMatch`. */
export interface Answer<T> {
  value: T;
  etag: string | null;
}

export interface Ask {
  query?: Parameters;
  body?: unknown;
  ifMatch?: string | null;
  ifNoneMatch?: string;
  idempotencyKey?: string;
  accept?: string;
  signal?: AbortSignal;
}

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** Return the address of an API path below the mount, which the page's <base> names. */
export function apiUrl(path: string, query: Parameters = {}): string {
  const url = new URL(`api/v1${path}`, document.baseURI);
  for (const [name, value] of Object.entries(query)) {
    if (value === null || value === undefined || value === "") continue;
    if (Array.isArray(value)) value.forEach((item: string) => url.searchParams.append(name, item));
    else url.searchParams.set(name, String(value));
  }
  return url.href;
}

/** Encode a name as one segment of a path. */
export const part = encodeURIComponent;

const onUnauthorized = new Set<() => void>();

/** Call `listener` whenever the API answers 401. */
export function whenSignedOut(listener: () => void): () => void {
  onUnauthorized.add(listener);
  return () => onUnauthorized.delete(listener);
}

const onSignedIn = new Set<() => void>();

/** Call `listener` when the user has signed in again on the same page. */
export function whenSignedIn(listener: () => void): () => void {
  onSignedIn.add(listener);
  return () => onSignedIn.delete(listener);
}

export function signedIn(): void {
  onSignedIn.forEach((listener) => listener());
}

async function send(method: Method, path: string, ask: Ask): Promise<Response> {
  const headers: Record<string, string> = { accept: ask.accept ?? "application/json" };
  if (ask.body !== undefined) headers["content-type"] = "application/json";
  if (ask.ifMatch) headers["if-match"] = ask.ifMatch;
  if (ask.ifNoneMatch) headers["if-none-match"] = ask.ifNoneMatch;
  if (ask.idempotencyKey) headers["idempotency-key"] = ask.idempotencyKey;
  let response: Response;
  try {
    response = await fetch(apiUrl(path, ask.query), {
      method,
      headers,
      body: ask.body === undefined ? undefined : writeJson(ask.body),
      signal: ask.signal,
      credentials: "same-origin",
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem({ status: 0, code: "away", detail: "the server does not answer" });
  }
  if (!response.ok) throw await refusal(response);
  return response;
}

async function refusal(response: Response): Promise<Problem> {
  if (response.status === 401) onUnauthorized.forEach((listener) => listener());
  const id = response.headers.get("x-request-id") ?? undefined;
  const rest = Number(response.headers.get("retry-after") ?? NaN);
  const after = Number.isFinite(rest) ? rest : undefined;
  try {
    const facts = parseJson(await response.text()) as ProblemFacts;
    if (typeof facts.code === "string") return new Problem(facts, id, after);
  } catch {
    // Not a problem document: a proxy answered.
  }
  return new Problem({ status: response.status, code: "unexpected", detail: `the server answered ${response.status}` }, id, after);
}

async function valued<T>(response: Response): Promise<T> {
  const text = await response.text();
  return (text ? parseJson(text) : null) as T;
}

async function call<T>(method: Method, path: string, ask: Ask = {}): Promise<T> {
  return valued<T>(await send(method, path, ask));
}

export const api = {
  get: <T>(path: string, query?: Parameters, signal?: AbortSignal) => call<T>("GET", path, { query, signal }),
  post: <T>(path: string, body?: unknown, ask?: Ask) => call<T>("POST", path, { ...ask, body }),
  put: <T>(path: string, body: unknown, ask?: Ask) => call<T>("PUT", path, { ...ask, body }),
  patch: <T>(path: string, body: unknown, ask?: Ask) => call<T>("PATCH", path, { ...ask, body }),
  delete: <T>(path: string, ask?: Ask) => call<T>("DELETE", path, ask),

  /** GET with the revision (`ETag`) of the answer. */
  async getWithEtag<T>(path: string, query?: Parameters, signal?: AbortSignal): Promise<Answer<T>> {
    const response = await send("GET", path, { query, signal });
    return { value: await valued<T>(response), etag: response.headers.get("etag") };
  },

  /** Stream NDJSON lines. A line that is a problem is thrown. */
  async *lines(path: string, body: unknown, signal?: AbortSignal): AsyncGenerator<unknown> {
    const response = await send("POST", path, { body, accept: "application/x-ndjson", signal });
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      const lines = (rest + (value ?? "")).split("\n");
      rest = done ? "" : (lines.pop() ?? "");
      for (const line of lines.filter((text) => text.trim())) {
        const found = parseJson(line) as ProblemFacts;
        if (typeof found.code === "string" && typeof found.status === "number") throw new Problem(found);
        yield found;
      }
      if (done) return;
    }
  },
};

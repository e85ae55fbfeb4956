/** Errors of the API (RFC 9457), including failed connections. Decide by `code`. */

export interface ProblemFacts {
  status: number;
  code: string;
  detail: string;
  hint?: string;
  pointer?: string;
}

export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly hint: string | undefined;
  readonly pointer: string | undefined;
  readonly requestId: string | undefined;
  /** Seconds to wait before a retry. */
  readonly retryAfter: number | undefined;

  constructor(facts: ProblemFacts, requestId?: string, retryAfter?: number) {
    super(facts.detail);
    this.name = "Problem";
    this.status = facts.status;
    this.code = facts.code;
    this.detail = facts.detail;
    this.hint = facts.hint;
    this.pointer = facts.pointer;
    this.requestId = requestId;
    this.retryAfter = retryAfter;
  }

  /** There was no answer: the server or the network is down. */
  get away(): boolean {
    return this.status === 0;
  }
}

/** Convert anything thrown to a `Problem`. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error;
  return new Problem({ status: 0, code: "unexpected", detail: error instanceof Error ? error.message : String(error) });
}

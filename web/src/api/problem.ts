/** What the API refuses, or why it could not be asked: RFC 9457, typed. Decide by `code`. */

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
  /** Not before so many seconds from now. */
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

  /** No answer at all: the server, or the way to it, is down. */
  get away(): boolean {
    return this.status === 0;
  }
}

/** Whatever was thrown, as a problem. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error;
  return new Problem({ status: 0, code: "unexpected", detail: error instanceof Error ? error.message : String(error) });
}

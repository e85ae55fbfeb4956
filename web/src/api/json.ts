/** Lossless JSON: integers beyond the range of a number become a BigInt. */

const MAYBE_LARGE = /\d{16}/;

type Reviver = (key: string, value: unknown, context?: { source?: string }) => unknown;

const exact: Reviver = (_key, value, context) =>
  typeof value === "number" && context?.source !== undefined && /^-?\d+$/.test(context.source) && !Number.isSafeInteger(value)
    ? BigInt(context.source)
    : value;

export function parseJson(text: string): unknown {
  // A reviver is slow, and large numbers are rare, so use it only if the text contains one.
  return MAYBE_LARGE.test(text) ? JSON.parse(text, exact as (key: string, value: unknown) => unknown) : JSON.parse(text);
}

/** Like JSON.stringify, with BigInts written as numbers and `indent` spaces per level. */
export function writeJson(value: unknown, indent = 0): string {
  return write(value, indent, "\n");
}

function write(value: unknown, indent: number, line: string): string {
  if (typeof value === "bigint") return value.toString();
  if (value === null || typeof value !== "object") return JSON.stringify(value) ?? "null";
  const inner = line + " ".repeat(indent);
  const [before, between, after] = indent ? [inner, `,${inner}`, line] : ["", ",", ""];
  if (Array.isArray(value)) {
    return value.length ? `[${before}${value.map((item) => write(item, indent, inner)).join(between)}${after}]` : "[]";
  }
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  if (!entries.length) return "{}";
  const colon = indent ? ": " : ":";
  const parts = entries.map(([name, item]) => JSON.stringify(name) + colon + write(item, indent, inner));
  return `{${before}${parts.join(between)}${after}}`;
}

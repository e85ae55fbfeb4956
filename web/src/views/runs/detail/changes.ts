/** Differences between two JSON values, and between two logs. */
import { writeJson } from "../../../api/json";

export interface Change {
  path: string;
  /** Undefined: the value is not there. */
  before: string | undefined;
  after: string | undefined;
}

const LONGEST = 200;
const MOST = 200;

/** Return the places at which two values differ. */
export function changesOf(before: unknown, after: unknown, path = ""): Change[] {
  if (isBranch(before) && isBranch(after) && Array.isArray(before) === Array.isArray(after)) {
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
    return names.flatMap((name) => changesOf((before as Values)[name], (after as Values)[name], path ? `${path}.${name}` : name)).slice(0, MOST);
  }
  const [left, right] = [told(before), told(after)];
  return left === right ? [] : [{ path: path || "$", before: left, after: right }];
}

type Values = Record<string, unknown>;
const isBranch = (value: unknown): value is object => value !== null && typeof value === "object";

function told(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  const text = typeof value === "string" ? value : writeJson(value);
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}

export interface Line {
  kind: "same" | "before" | "after";
  text: string;
}

/** Numbers, times and ids differ from run to run, and say nothing about what a log tells. */
const VARYING = /[0-9a-f]{8}-[0-9a-f-]{27,}|0x[0-9a-f]+|\d+(?:[.,:]\d+)*/gi;
const stable = (text: string) => text.replace(VARYING, "#");

/** Compare two logs line by line, regardless of numbers: the longest common subsequence. */
export function comparedLogs(before: string[], after: string[]): Line[] {
  const [left, right] = [before.map(stable), after.map(stable)];
  const width = right.length + 1;
  const lengths = new Uint16Array((left.length + 1) * width);
  for (let i = left.length - 1; i >= 0; i--) {
    for (let j = right.length - 1; j >= 0; j--) {
      lengths[i * width + j] = left[i] === right[j] ? lengths[(i + 1) * width + j + 1]! + 1 : Math.max(lengths[(i + 1) * width + j]!, lengths[i * width + j + 1]!);
    }
  }
  const lines: Line[] = [];
  let [i, j] = [0, 0];
  while (i < left.length || j < right.length) {
    if (i < left.length && j < right.length && left[i] === right[j]) {
      lines.push({ kind: "same", text: after[j]! });
      i++, j++;
    } else if (j >= right.length || (i < left.length && lengths[(i + 1) * width + j]! >= lengths[i * width + j + 1]!)) lines.push({ kind: "before", text: before[i++]! });
    else lines.push({ kind: "after", text: after[j++]! });
  }
  return lines;
}

/** Addresses of a schedule and its runs. */
import { part } from "../../api/client";
import { withSearch } from "../../router";

export const schedulePath = (name: string) => `/schedules/${part(name)}`;

/** Return the address of its runs, in the syntax of the search box. */
export function runsOf(name: string, state?: string): string {
  const quoted = /^[^\s"\\]+$/.test(name) ? name : `"${name.replace(/["\\]/g, "\\$&")}"`;
  return withSearch("/runs", { q: `${state ? `state:${state} ` : ""}schedule:${quoted}` });
}

/** Where things of schedules are. */
import { part } from "../../api/client";
import { withSearch } from "../../router";

export const schedulePath = (name: string) => `/schedules/${part(name)}`;

/** Its runs, in the words of the search box. */
export function runsOf(name: string, state?: string): string {
  const quoted = /^[^\s"\\]+$/.test(name) ? name : `"${name.replace(/["\\]/g, "\\$&")}"`;
  return withSearch("/runs", { q: `${state ? `state:${state} ` : ""}schedule:${quoted}` });
}

/** Address of a lane's subject. */
import { part } from "../../api/client";
import { withSearch } from "../../router";
import { format } from "../runs/search";

export const BY = ["schedule", "job", "worker", "queue"] as const;
export type By = (typeof BY)[number];

export function laneLink(by: By, name: string): string {
  if (by === "job") return withSearch("/runs", { q: format([{ name: "job", value: name }]) });
  return `/${by}s/${part(name)}`;
}

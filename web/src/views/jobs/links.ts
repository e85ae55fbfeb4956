/** Addresses of a job's runs. */
import { withSearch } from "../../router";
import { format } from "../runs/search";

export const runsOf = (job: string, state?: string) =>
  withSearch("/runs", { q: format([...(state ? [{ name: "state", value: state }] : []), { name: "job", value: job }]) });

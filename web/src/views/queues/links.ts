/** Addresses of a queue's runs. */
import { withSearch } from "../../router";
import { format } from "../runs/search";

export const runsOf = (queue: string, state?: string) =>
  withSearch("/runs", { q: format([...(state ? [{ name: "state", value: state }] : []), { name: "queue", value: queue }]) });

/** Addresses of scopes and of their runs. */
import { part } from "../../api/client";
import { withSearch } from "../../router";
import { format } from "../runs/search";

export const scopePath = (kind: string, id: string) => `/scopes/${part(kind)}/${part(id)}`;

export const runsOf = (kind: string, id: string, ...more: [name: string, value: string][]) =>
  withSearch("/runs", { q: format([...more.map(([name, value]) => ({ name, value })), { name: "scope", value: `${kind}/${id}` }]) });

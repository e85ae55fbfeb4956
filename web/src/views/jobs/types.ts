/** Type of a job in the API, whose schema only says `object`. */
import type { JobStatus } from "../../api/schema";
import type { JsonSchema } from "../../ui";

export interface Job {
  name: string;
  version: number;
  kind: string;
  queue: string;
  priority: number;
  retry: { max_attempts: number; [other: string]: unknown };
  timeout: string | null;
  on_lost: string;
  isolation: string;
  cancel: { supported: boolean; grace: string };
  retention: { keep: number | null; keep_for: string | null };
  steps: { id: string }[];
  enabled: boolean;
  description: string;
  tags: string[];
  payload_schema: JsonSchema | null;
  status: JobStatus;
  [other: string]: unknown;
}

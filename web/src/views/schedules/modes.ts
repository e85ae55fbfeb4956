/** Policy modes, as the API names them. */
export const OVERLAPS = ["skip", "allow", "cancel_previous", "parallel", "queue_one", "queue_all"] as const;
export const CATCH_UPS = ["latest", "all", "none"] as const;
export const FAILURES = ["run_new", "skip", "retry", "backoff", "half_open", "pause"] as const;
export const FULLS = ["queue", "skip", "reject", "cancel_oldest"] as const;

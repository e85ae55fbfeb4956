/** The state of a queue as a badge, and how long its oldest run has waited. */
import type { Queue } from "../../api/schema";
import { useWords } from "../../i18n";
import { Badge, Duration } from "../../ui";
import { queuesWords } from "./words";

export function QueueBadge({ queue, served }: { queue: Queue; served: boolean }) {
  const t = useWords(queuesWords);
  if (queue.paused) return <Badge tone="warn" shape="waiting">{t.paused}</Badge>;
  if (!served) return <Badge tone={queue.queued ? "bad" : "idle"} shape="expired">{t.unserved}</Badge>;
  return <Badge tone="good" shape="succeeded">{t.open}</Badge>;
}

export function Oldest({ queue }: { queue: Queue }) {
  return queue.oldest_at ? <Duration from={queue.oldest_at} /> : <span className="quiet">–</span>;
}

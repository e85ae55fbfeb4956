/** Live updates: a change that the server announces reloads the queries of its topic.
 *
 * One event stream per page covers the topics of the visible components. It is closed while the page is hidden. When the
 * stream fails, all queries are reloaded every five seconds instead.
 */
import { useQueryClient, type Query, type QueryClient } from "@tanstack/react-query";
import { createContext, useContext, useEffect, useMemo, useState, type ReactNode } from "react";
import { apiUrl, whenSignedIn } from "./client";

export type Topic = "runs" | "schedules" | "workers" | "queues" | `run:${string}`;
export type LiveState = "live" | "connecting" | "polling" | "paused" | "off";

const MOST_OFTEN = 250;
const POLL = 5_000;
const TRY_AGAIN = 15_000;

class Live {
  private wanted = new Map<Topic, number>();
  private source: EventSource | null = null;
  private connected = "";
  private soon: number | undefined;
  private polling: number | undefined;
  private retry: number | undefined;
  private old = new Set<Query>();
  private flushing: number | undefined;
  private lastFlush = 0;
  private stale = false;
  private running = false;
  private on = true;
  state: LiveState = "connecting";
  private listeners = new Set<() => void>();

  constructor(private readonly queries: QueryClient) {}

  start(): () => void {
    this.running = true;
    const look = () => this.reconnect();
    document.addEventListener("visibilitychange", look);
    const unlisten = whenSignedIn(() => {
      this.close();
      this.stale = true;
      this.reconnect();
    });
    this.reconnect();
    return () => {
      this.running = false;
      document.removeEventListener("visibilitychange", look);
      unlisten();
      this.reconnect();
    };
  }

  want(topics: readonly Topic[]): () => void {
    topics.forEach((topic) => this.wanted.set(topic, (this.wanted.get(topic) ?? 0) + 1));
    this.reconnectSoon();
    return () => {
      for (const topic of topics) {
        const left = (this.wanted.get(topic) ?? 1) - 1;
        if (left) this.wanted.set(topic, left);
        else this.wanted.delete(topic);
      }
      this.reconnectSoon();
    };
  }

  toggle(): void {
    this.on = !this.on;
    this.reconnect();
    if (this.on) this.everything();
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private say(state: LiveState): void {
    if (state === this.state) return;
    this.state = state;
    this.listeners.forEach((listener) => listener());
  }

  private reconnectSoon(): void {
    window.clearTimeout(this.soon);
    this.soon = window.setTimeout(() => this.reconnect(), 20);
  }

  private reconnect(): void {
    const topics = [...this.wanted.keys()].sort().join(",");
    if (!this.running || !this.on || document.hidden) {
      this.close();
      this.old.clear(); // all queries are reloaded when the page becomes visible
      this.stale = true;
      this.say(this.on ? "paused" : "off");
      return;
    }
    if (this.stale) this.everything();
    this.stale = false;
    if (topics === this.connected && this.source) return;
    this.close();
    if (!topics) return this.say("live");
    this.connected = topics;
    this.open(topics);
  }

  private open(topics: string): void {
    if (!this.polling) this.say("connecting");
    const source = (this.source = new EventSource(apiUrl("/stream", { topics })));
    source.addEventListener("open", () => {
      if (this.polling) this.everything();
      window.clearInterval(this.polling);
      this.polling = undefined;
      this.say("live");
    });
    source.addEventListener("hint", (event) => {
      const hint = JSON.parse((event as MessageEvent<string>).data) as { topic: string };
      this.queries.getQueryCache().findAll({ queryKey: [hint.topic] }).forEach((query) => this.old.add(query));
      this.flushSoon();
    });
    source.addEventListener("reset", () => this.everything());
    source.addEventListener("error", () => {
      this.poll();
      if (source.readyState !== EventSource.CLOSED) return; // the browser reconnects by itself
      window.clearTimeout(this.retry);
      this.retry = window.setTimeout(() => {
        this.connected = "";
        this.reconnect();
      }, TRY_AGAIN);
    });
  }

  private poll(): void {
    this.say("polling");
    this.polling ??= window.setInterval(() => this.everything(), POLL);
  }

  private close(): void {
    this.source?.close();
    this.source = null;
    this.connected = "";
    window.clearTimeout(this.retry);
    if (!this.running || !this.on || document.hidden) {
      window.clearInterval(this.polling);
      this.polling = undefined;
    }
  }

  private everything(): void {
    void this.queries.invalidateQueries();
  }

  private flushSoon(): void {
    if (this.flushing !== undefined) return;
    const rest = Math.max(0, this.lastFlush + MOST_OFTEN - performance.now());
    this.flushing = window.setTimeout(() => {
      this.flushing = undefined;
      this.lastFlush = performance.now();
      for (const query of [...this.old]) {
        // A request in flight may have been read before the change, so reload it afterwards.
        if (query.state.fetchStatus !== "idle" || Date.now() - query.state.dataUpdatedAt < restOf(query)) continue;
        this.old.delete(query);
        void this.queries.invalidateQueries({ queryKey: query.queryKey, exact: true });
      }
      if (this.old.size) this.flushSoon();
    }, rest);
  }
}

/** Limit the rate of expensive queries: see `Asking.rest`. */
function restOf(query: Query): number {
  return Number(query.meta?.rest ?? 0);
}

const LiveContext = createContext<Live | null>(null);

export function LiveProvider({ children }: { children: ReactNode }) {
  const queries = useQueryClient();
  const live = useMemo(() => new Live(queries), [queries]);
  useEffect(() => live.start(), [live]);
  return <LiveContext value={live}>{children}</LiveContext>;
}

/** Listen to topics while the caller is mounted. Queries with keys `[topic, …]` reload by themselves. */
export function useLive(...topics: Topic[]): void {
  const live = useContext(LiveContext);
  const key = topics.join(",");
  useEffect(() => live?.want(key.split(",").filter(Boolean) as Topic[]), [live, key]);
}

/** Return the state of live updates, and the switch for it. */
export function useLiveState(): [LiveState, () => void] {
  const live = useContext(LiveContext)!;
  const [state, setState] = useState(live.state);
  useEffect(() => {
    setState(live.state);
    return live.subscribe(() => setState(live.state));
  }, [live]);
  return [state, () => live.toggle()];
}

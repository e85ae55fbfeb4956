/** Hooks for queries and commands. A query key begins with the topic that invalidates it: see live.tsx. */
import {
  keepPreviousData,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
  type UseQueryResult,
} from "@tanstack/react-query";
import { api, type Page, type Parameters } from "./client";
import { useLive, type Topic } from "./live";
import type { Problem } from "./problem";
import type { Identity } from "./schema";

export interface Asking {
  enabled?: boolean;
  /** Keep the previous answer while new parameters load. */
  keep?: boolean;
  /** Minimum milliseconds between two requests, for expensive queries. */
  rest?: number;
  /** Poll interval in milliseconds, for data that changes with time alone. */
  every?: number;
  /** Body of a question that is posted. */
  body?: object;
}

/** Query an address now and after each change of the topic: `useGet<Run>("run:…", "/runs/…")`. With topic `null`, only once. */
export function useGet<T>(
  topic: Topic | null,
  path: string,
  query: Parameters = {},
  asking: Asking = {},
): UseQueryResult<T, Problem> {
  useLive(...(topic ? [topic] : []));
  return useQuery<T, Problem>({
    queryKey: [topic, path, query, asking.body],
    meta: { rest: asking.rest },
    queryFn: ({ signal }) => (asking.body ? api.post<T>(path, asking.body, { query, signal }) : api.get<T>(path, query, signal)),
    enabled: asking.enabled ?? true,
    placeholderData: asking.keep ? keepPreviousData : undefined,
    refetchInterval: asking.every ?? false,
  });
}

/** Query a paged list: `items` of all loaded pages, `more()` for the next one. */
export function usePages<T>(topic: Topic | null, path: string, query: Parameters = {}, asking: Asking = {}) {
  useLive(...(topic ? [topic] : []));
  const result = useInfiniteQuery<Page<T>, Problem, { pages: Page<T>[] }, unknown[], string | null>({
    queryKey: [topic, path, query, "pages"],
    meta: { rest: asking.rest },
    queryFn: ({ signal, pageParam }) => api.get<Page<T>>(path, { ...query, cursor: pageParam }, signal),
    initialPageParam: null,
    getNextPageParam: (last) => last.next_cursor,
    enabled: asking.enabled ?? true,
    placeholderData: asking.keep ? keepPreviousData : undefined,
    refetchInterval: asking.every ?? false,
  });
  return {
    items: result.data?.pages.flatMap((page) => page.items),
    problem: result.error,
    loading: result.isPending,
    old: result.isPlaceholderData,
    hasMore: result.hasNextPage,
    loadingMore: result.isFetchingNextPage,
    more: () => void result.fetchNextPage(),
    again: () => void result.refetch(),
  };
}

/** Run a command, then reload the queries of the topics. */
export function useCommand<A, T>(act: (argument: A) => Promise<T>, ...topics: Topic[]) {
  const queries = useQueryClient();
  return useMutation<T, Problem, A>({
    mutationFn: act,
    onSettled: () => Promise.all(topics.map((topic) => queries.invalidateQueries({ queryKey: [topic] }))),
  });
}

const RANKS = { viewer: 1, operator: 2, admin: 3, worker: 0, enqueue: 0 };

export function useWhoAmI(): UseQueryResult<Identity, Problem> {
  return useQuery<Identity, Problem>({
    queryKey: ["whoami"],
    queryFn: ({ signal }) => api.get<Identity>("/whoami", {}, signal),
    staleTime: 60_000,
  });
}

export const useIdentity = (): Identity | undefined => useWhoAmI().data;

/** Return whether the user has a role. Views hide buttons that the server would refuse. */
export function useMay(role: "operator" | "admin"): boolean {
  const identity = useIdentity();
  return identity !== undefined && RANKS[identity.role] >= RANKS[role];
}

/** Client-side router. */
import {
  createContext,
  useCallback,
  useContext,
  useEffect,
  useMemo,
  useRef,
  useSyncExternalStore,
  type AnchorHTMLAttributes,
  type ComponentType,
  type MouseEvent,
  type ReactNode,
} from "react";

const BASE = new URL(document.baseURI).pathname.replace(/\/$/, "");
const CHANGED = "rota:moved";

/** Return the current address below the mount: `/runs?state=failed`. */
function here(): string {
  const { pathname, search } = window.location;
  return (pathname.startsWith(BASE) ? pathname.slice(BASE.length) : pathname || "/") + search || "/";
}

function listen(listener: () => void): () => void {
  window.addEventListener("popstate", listener);
  window.addEventListener(CHANGED, listener);
  return () => {
    window.removeEventListener("popstate", listener);
    window.removeEventListener(CHANGED, listener);
  };
}

/** Return the `href` of a path below the mount. */
export function href(path: string): string {
  return BASE + path;
}

export function navigate(path: string, { replace = false }: { replace?: boolean } = {}): void {
  if (path === here()) return;
  const leaving = here().split("?")[0] !== path.split("?")[0];
  window.history[replace ? "replaceState" : "pushState"](null, "", href(path));
  window.dispatchEvent(new Event(CHANGED));
  if (leaving) window.scrollTo(0, 0);
}

export interface Place {
  path: string;
  search: URLSearchParams;
}

export function usePlace(): Place {
  const address = useSyncExternalStore(listen, here);
  return useMemo(() => {
    const [path, search] = address.split("?", 2);
    return { path: path || "/", search: new URLSearchParams(search ?? "") };
  }, [address]);
}

/** Use one query parameter as state: `const [job, setJob] = useParameter("job")`. */
export function useParameter(name: string): [string | null, (value: string | null, how?: { replace?: boolean }) => void] {
  const { search } = usePlace();
  const set = useCallback(
    (value: string | null, how?: { replace?: boolean }) => {
      const [path, before] = here().split("?", 2);
      const after = new URLSearchParams(before ?? "");
      if (value === null || value === "") after.delete(name);
      else after.set(name, value);
      navigate(withSearch(path || "/", after), { replace: how?.replace ?? true });
    },
    [name],
  );
  return [search.get(name), set];
}

export function withSearch(path: string, search: URLSearchParams | Record<string, string | null | undefined>): string {
  const all =
    search instanceof URLSearchParams
      ? search
      : new URLSearchParams(Object.entries(search).filter((entry): entry is [string, string] => !!entry[1]));
  const text = all.toString();
  return text ? `${path}?${text}` : path;
}

interface LinkProps extends Omit<AnchorHTMLAttributes<HTMLAnchorElement>, "href"> {
  to: string;
  children?: ReactNode;
}

export function Link({ to, onClick, ...rest }: LinkProps) {
  const go = (event: MouseEvent<HTMLAnchorElement>) => {
    onClick?.(event);
    if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    navigate(to);
  };
  return <a href={href(to)} onClick={go} {...rest} />;
}

export interface Route {
  /** Path such as `/runs/:id`. Segments with a colon are passed to the page, decoded. */
  path: string;
  page: ComponentType<{ params: Record<string, string> }>;
}

const ParamsContext = createContext<Record<string, string>>({});
export const useParams = () => useContext(ParamsContext);

function match(pattern: string, path: string): Record<string, string> | null {
  const wanted = pattern.split("/");
  const given = path.replace(/(.)\/$/, "$1").split("/");
  if (wanted.length !== given.length) return null;
  const params: Record<string, string> = {};
  for (const [index, piece] of wanted.entries()) {
    const found = given[index]!;
    if (piece.startsWith(":")) {
      try {
        params[piece.slice(1)] = decodeURIComponent(found);
      } catch {
        return null;
      }
    } else if (piece !== found) return null;
  }
  return params;
}

export function Routes({ routes, missing }: { routes: Route[]; missing: ReactNode }) {
  const { path } = usePlace();
  const found = useMemo(() => {
    for (const route of routes) {
      const params = match(route.path, path);
      if (params) return { route, params };
    }
    return null;
  }, [routes, path]);
  const first = useRef(true);
  useEffect(() => {
    // Focus the content after navigation. On the first page, leave the focus before the skip link.
    if (!first.current) document.getElementById("main")?.focus({ preventScroll: true });
    first.current = false;
  }, [path]);
  if (!found) return <>{missing}</>;
  const Page = found.route.page;
  return (
    <ParamsContext value={found.params}>
      <Page params={found.params} key={found.route.path + JSON.stringify(found.params)} />
    </ParamsContext>
  );
}

/** Client-side router. */
import {
  createContext,
  useCallback,
  useContext,
  useEffect,
  useMemo,
  useRef,
  useState,
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

type PageProps = { params: Record<string, string> };

/** Code that may be loaded before it is needed. */
export interface Ahead {
  load?: () => Promise<unknown>;
}

/** Page whose code may be loaded when it is needed: see `later`. */
type RoutePage = ((props: PageProps) => ReactNode) & Ahead;

export interface Route {
  /** Path such as `/runs/:id`. Segments with a colon are passed to the page, decoded. */
  path: string;
  page: RoutePage;
}

/** Return a page whose code is in a file of its own, so that the first view loads only what it shows. */
export function later(load: () => Promise<ComponentType<PageProps>>): RoutePage {
  let found: ComponentType<PageProps> | null = null;
  let loading: Promise<unknown> | null = null;
  const start = () => (loading ??= load().then((page) => (found = page), (error: unknown) => {
    loading = null; // the server is away, or has another version by now: the next try asks again
    throw error;
  }));
  function Later(props: PageProps) {
    const [, loaded] = useState<unknown>(null);
    useEffect(() => {
      let here = true;
      if (!found) start().then(() => here && loaded({}), (error: unknown) => here && loaded(() => { throw error; }));
      return () => { here = false; };
    }, []);
    const Page = found;
    return Page && <Page {...props} />;
  }
  return Object.assign(Later, { load: start });
}

/** Return a component whose code is loaded when it is first shown, such as a dialog of another page. */
export function lazily<P extends object>(load: () => Promise<ComponentType<P>>): ((props: P) => ReactNode) & Ahead {
  let found: ComponentType<P> | null = null;
  const start = () => load().then((component) => (found = component));
  function Lazily(props: P) {
    const [, loaded] = useState<unknown>(null);
    useEffect(() => {
      let here = true;
      if (!found) start().then(() => here && loaded({}), () => undefined);
      return () => { here = false; };
    }, []);
    const Component = found;
    return Component && <Component {...props} />;
  }
  return Object.assign(Lazily, { load: start });
}

/** Load the code of other pages and dialogs while nothing else happens, so that a click or a key shows them at once. */
export function useLoadedAhead(ahead: Ahead[]): void {
  useEffect(() => {
    const pages = [...ahead];
    const next = () => {
      if (document.hidden) return void window.setTimeout(next, 5_000); // nobody looks: nothing is asked
      const page = pages.shift();
      if (page) void Promise.resolve(page.load?.()).catch(() => undefined).then(() => window.setTimeout(next, 50));
    };
    const waiting = window.setTimeout(next, 1_500);
    return () => window.clearTimeout(waiting);
  }, [ahead]);
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

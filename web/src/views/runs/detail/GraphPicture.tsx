/** Picture of a family: boxes from left to right, moved and zoomed with pointer, wheel, buttons and keys. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState, type KeyboardEvent, type PointerEvent } from "react";
import { useWords } from "../../../i18n";
import { common } from "../../../i18n/common";
import { href, navigate } from "../../../router";
import { Button, duration, FINAL, shapeOf, toneOf, useNow } from "../../../ui";
import { ending } from "../RunLink";
import { HEIGHT, WIDTH, type Edge, type Layout, type Node } from "./family";
import { spansOf } from "./Graph";
import { graphWords } from "./graphWords";

interface Camera {
  x: number;
  y: number;
  scale: number;
}

const EDGE = 24;
const LARGEST = 1.25;
const SMALLEST = 0.08;

export function GraphPicture({ layout, self }: { layout: Layout; self: string }) {
  const t = useWords(graphWords);
  const states = useWords(common);
  const now = useNow();
  const box = useRef<HTMLDivElement>(null);
  const { camera, zoom, pan, fit, size } = useCamera(box, layout, self);
  const drag = useDrag(pan);
  const [here, setHere] = useState<string | null>(null);
  const found = layout.nodes.find((node) => node.run.id === here) ?? null;
  const keys = useWalk({ layout, found, self, setHere, zoom, pan, fit });
  useEffect(() => {
    if (!found) return;
    // Keep the selected run in sight.
    const [left, top] = [found.x * camera.scale + camera.x, found.y * camera.scale + camera.y];
    const [right, bottom] = [left + WIDTH * camera.scale, top + HEIGHT * camera.scale];
    const dx = left < EDGE ? EDGE - left : right > size.width - EDGE ? size.width - EDGE - right : 0;
    const dy = top < EDGE ? EDGE - top : bottom > size.height - EDGE ? size.height - EDGE - bottom : 0;
    if (dx || dy) pan(dx, dy);
    // eslint-disable-next-line
  }, [here]);
  const told = found && `${found.run.job ?? t.pruned}, ${found.run.state ? states[found.run.state] : t.pruned}, ${spoken(found, now, t)}`;
  return (
    <div className="graph">
      <div
        ref={box}
        className="graph-plot"
        style={{ height: size.height }}
        role="application"
        aria-label={t.picture(layout.nodes.length, layout.edges.length)}
        aria-describedby="graph-keys"
        tabIndex={0}
        data-drag={drag.active ? "" : undefined}
        onKeyDown={keys}
        onFocus={(event) => event.currentTarget.matches(":focus-visible") && setHere((before) => before ?? self)}
        onBlur={() => setHere(null)}
        onPointerDown={drag.down}
        onPointerMove={drag.move}
        onPointerUp={drag.up}
        onPointerCancel={drag.up}
      >
        <svg width={size.width} height={size.height} aria-hidden="true">
          <defs>
            {["", "-critical"].map((kind) => (
              <marker key={kind} id={`graph-arrow${kind}`} viewBox="0 0 8 8" refX="7" refY="4" markerWidth={kind ? 11 : 9} markerHeight={kind ? 11 : 9} markerUnits="userSpaceOnUse" orient="auto">
                <path className={`graph-head${kind}`} d="M0 0.5 8 4 0 7.5z" />
              </marker>
            ))}
          </defs>
          <g transform={`translate(${camera.x} ${camera.y}) scale(${camera.scale})`}>
            {layout.edges.map((edge) => (
              <Line key={`${edge.link.kind} ${edge.link.from} ${edge.link.to}`} edge={edge} />
            ))}
            {layout.nodes.map((node) => (
              <Box
                key={node.run.id}
                node={node}
                now={now}
                self={node.run.id === self}
                here={node.run.id === here}
                critical={layout.critical.includes(node.run.id)}
                onOpen={(event) => {
                  if (drag.moved() || node.run.state === null) return;
                  if (event.metaKey || event.ctrlKey) window.open(href(placeOf(node)), "_blank", "noopener");
                  else navigate(placeOf(node));
                }}
              />
            ))}
          </g>
        </svg>
        <span className="unseen" role="status">
          {told}
        </span>
      </div>
      <div className="graph-tools">
        <Button small look="plain" icon="plus" label={t.zoomIn} onClick={() => zoom(1.4)} />
        <Button small look="plain" label={t.zoomOut} onClick={() => zoom(1 / 1.4)} className="icon">
          <svg viewBox="0 0 16 16" fill="none" stroke="currentColor" strokeWidth="1.4" strokeLinecap="round" aria-hidden="true">
            <path d="M3 8h10" />
          </svg>
        </Button>
        <Button small onClick={fit}>
          {t.fit}
        </Button>
      </div>
      <p id="graph-keys" className="unseen">
        {t.keys}
      </p>
      <Legend layout={layout} />
    </div>
  );
}

const placeOf = (node: Node) => `/runs/${node.run.id}?tab=graph`;

function spoken(node: Node, now: number, t: { waitedFor: (span: string) => string; ranFor: (span: string) => string }): string {
  if (node.run.state === null) return ending(node.run.id);
  const { due, began, end } = spansOf(node, now);
  return began === null ? t.waitedFor(duration(Math.max(0, end - due))) : t.ranFor(duration(end - began));
}

function Line({ edge: { link, from, to, critical } }: { edge: Edge }) {
  const [x1, y1, x2, y2] = [from.x + WIDTH, from.y + HEIGHT / 2, to.x - 2, to.y + HEIGHT / 2];
  const bend = Math.max(24, (x2 - x1) / 2);
  return (
    <path
      className="graph-line"
      data-kind={link.kind}
      data-critical={critical ? "" : undefined}
      d={`M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`}
      markerEnd={`url(#graph-arrow${critical ? "-critical" : ""})`}
    />
  );
}

interface BoxProps {
  node: Node;
  now: number;
  self: boolean;
  here: boolean;
  critical: boolean;
  onOpen: (event: { metaKey: boolean; ctrlKey: boolean }) => void;
}

function Box({ node, now, self, here, critical, onOpen }: BoxProps) {
  const t = useWords(graphWords);
  const { run } = node;
  const state = run.state;
  const going = state !== null && !FINAL.has(state) && run.started_at !== null && run.percentage !== null;
  const { began, end } = spansOf(node, now);
  const beside = state === null ? t.pruned : began === null ? "" : duration(end - began);
  return (
    <g
      className={`graph-node tone-${state === null ? "idle" : toneOf(state)}${self ? " self" : ""}${here ? " here" : ""}`}
      data-run={run.id}
      data-state={state ?? "pruned"}
      data-critical={critical ? "" : undefined}
      transform={`translate(${node.x} ${node.y})`}
      onClick={onOpen}
    >
      <title>{`${run.job ?? t.pruned} ${run.id}`}</title>
      <rect width={WIDTH} height={HEIGHT} rx={7} />
      {going && <rect className="graph-done" width={Math.max(3, (WIDTH * run.percentage!) / 100)} height={3} y={HEIGHT - 3} rx={1.5} />}
      {state !== null && <path className="graph-shape" d={shapeOf(state)} fillRule="evenodd" transform="translate(10 9)" />}
      <text className="graph-job" x={29} y={19}>
        {cut(run.job ?? ending(run.id), 19)}
      </text>
      <text className="graph-id" x={10} y={36}>
        {`…${run.id.slice(-6)}`}
      </text>
      <text className="graph-took" x={WIDTH - 10} y={36} textAnchor="end">
        {beside}
      </text>
      {run.more && (
        <text className="graph-more" x={WIDTH - 10} y={18} textAnchor="end">
          …
        </text>
      )}
    </g>
  );
}

const cut = (text: string, most: number) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

function Legend({ layout }: { layout: Layout }) {
  const t = useWords(graphWords);
  const kinds = (["dependency", "replica", "retry"] as const).filter((kind) => layout.edges.some((edge) => edge.link.kind === kind));
  return (
    <ul className="graph-legend" aria-label={t.legend}>
      {kinds.map((kind) => (
        <li key={kind}>
          <svg viewBox="0 0 24 8" aria-hidden="true">
            <path className="graph-line" data-kind={kind} d="M1 4h22" />
          </svg>
          {t[kind]}
        </li>
      ))}
      {layout.critical.length > 0 && (
        <li>
          <svg viewBox="0 0 24 8" aria-hidden="true">
            <path className="graph-line" data-critical="" d="M1 4h22" />
          </svg>
          {t.criticalLine}
        </li>
      )}
    </ul>
  );
}

/** The part of the picture that is shown. It shows all, or the run itself if all would be too small. */
function useCamera(box: React.RefObject<HTMLDivElement | null>, layout: Layout, self: string) {
  const [width, setWidth] = useState(800);
  useLayoutEffect(() => {
    const watching = new ResizeObserver(([entry]) => setWidth(Math.max(200, entry!.contentRect.width)));
    watching.observe(box.current!);
    return () => watching.disconnect();
  }, [box]);
  const height = Math.max(180, Math.min(560, layout.height + 2 * EDGE));
  const whole = useMemo<Camera>(() => {
    const scale = Math.max(SMALLEST, Math.min(1, (width - 2 * EDGE) / layout.width, (height - 2 * EDGE) / layout.height));
    return { scale, x: (width - layout.width * scale) / 2, y: (height - layout.height * scale) / 2 };
  }, [width, height, layout.width, layout.height]);
  const readable = useMemo<Camera>(() => {
    const own = layout.nodes.find((node) => node.run.id === self);
    if (whole.scale >= 0.55 || !own) return whole;
    const scale = 0.8;
    return { scale, x: width / 2 - (own.x + WIDTH / 2) * scale, y: height / 2 - (own.y + HEIGHT / 2) * scale };
  }, [whole, layout, self, width, height]);
  const [chosen, setChosen] = useState<Camera | null>(null);
  const camera = chosen ?? readable;
  const zoom = (factor: number, at: [number, number] = [width / 2, height / 2]) =>
    setChosen(() => {
      const scale = Math.max(SMALLEST, Math.min(LARGEST, camera.scale * factor));
      const by = scale / camera.scale;
      return { scale, x: at[0] - (at[0] - camera.x) * by, y: at[1] - (at[1] - camera.y) * by };
    });
  const pan = (dx: number, dy: number) => setChosen((before) => ({ ...(before ?? camera), x: (before ?? camera).x + dx, y: (before ?? camera).y + dy }));
  const latest = useRef({ zoom, pan });
  latest.current = { zoom, pan };
  useEffect(() => {
    // Not React's onWheel, which is passive. A plain wheel scrolls the page.
    const element = box.current!;
    const wheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return;
      event.preventDefault();
      const area = element.getBoundingClientRect();
      if (event.shiftKey) latest.current.pan(-(event.deltaX || event.deltaY), 0);
      else latest.current.zoom(Math.exp(-event.deltaY / 300), [event.clientX - area.left, event.clientY - area.top]);
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  }, [box]);
  return { camera, zoom, pan, fit: () => setChosen(whole), size: { width, height } };
}

function useDrag(pan: (dx: number, dy: number) => void) {
  const last = useRef<[number, number] | null>(null);
  const far = useRef(0);
  const [active, setActive] = useState(false);
  return {
    active,
    moved: () => far.current > 4,
    down: (event: PointerEvent) => {
      if (event.button) return;
      [last.current, far.current] = [[event.clientX, event.clientY], 0];
    },
    move: (event: PointerEvent) => {
      if (!last.current) return;
      const [dx, dy] = [event.clientX - last.current[0], event.clientY - last.current[1]];
      far.current += Math.abs(dx) + Math.abs(dy);
      last.current = [event.clientX, event.clientY];
      if (far.current <= 4) return;
      if (!active) {
        event.currentTarget.setPointerCapture(event.pointerId);
        setActive(true);
      }
      pan(dx, dy);
    },
    up: () => {
      last.current = null;
      setActive(false);
    },
  };
}

interface Walk {
  layout: Layout;
  found: Node | null;
  self: string;
  setHere: (id: string | null) => void;
  zoom: (factor: number) => void;
  pan: (dx: number, dy: number) => void;
  fit: () => void;
}

function useWalk({ layout, found, self, setHere, zoom, pan, fit }: Walk) {
  const nearest = (nodes: Node[], to: Node) => nodes.reduce<Node | null>((best, each) => (!best || Math.abs(each.y - to.y) < Math.abs(best.y - to.y) ? each : best), null);
  const go = (node: Node | null | undefined) => node && setHere(node.run.id);
  const across = (side: "from" | "to") => {
    if (!found) return setHere(self);
    const other = side === "to" ? "from" : "to";
    const linked = layout.edges.filter((edge) => edge[other] === found).map((edge) => edge[side]);
    const next = found.layer + (side === "to" ? 1 : -1);
    go(nearest(linked, found) ?? nearest(layout.nodes.filter((node) => node.layer === next), found));
  };
  const along = (by: 1 | -1) => {
    if (!found) return setHere(self);
    const layer = layout.nodes.filter((node) => node.layer === found.layer).sort((a, b) => a.y - b.y);
    go(layer[layer.indexOf(found) + by]);
  };
  return (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const far = 80;
    const acts: Record<string, () => void> = {
      ArrowLeft: () => (event.shiftKey ? pan(far, 0) : across("from")),
      ArrowRight: () => (event.shiftKey ? pan(-far, 0) : across("to")),
      ArrowUp: () => (event.shiftKey ? pan(0, far) : along(-1)),
      ArrowDown: () => (event.shiftKey ? pan(0, -far) : along(1)),
      "+": () => zoom(1.4),
      "=": () => zoom(1.4),
      "-": () => zoom(1 / 1.4),
      "0": fit,
      Enter: () => found && found.run.state !== null && navigate(placeOf(found)),
      Escape: () => setHere(null),
    };
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  };
}

/** Family of a run: the direct relatives of one run, and the layout of all of them as a graph. */
import type { Family, FamilyLink, FamilyRun } from "../../../api/schema";

export const KINDS = ["dependency", "replica", "retry"] as const;
export type Kind = (typeof KINDS)[number];

export interface Relatives {
  follows: FamilyRun[];
  followedBy: FamilyRun[];
  replicaOf: FamilyRun[];
  replicas: FamilyRun[];
  retryOf: FamilyRun[];
  retries: FamilyRun[];
}

/** Return the runs that are directly linked with this one. */
export function relativesOf(family: Family, id: string): Relatives {
  const byId = new Map(family.items.map((run) => [run.id, run]));
  const of = (kind: Kind, here: "from" | "to", there: "from" | "to") =>
    family.links.filter((link) => link.kind === kind && link[here] === id).flatMap((link) => byId.get(link[there]) ?? []);
  return {
    follows: of("dependency", "to", "from"),
    followedBy: of("dependency", "from", "to"),
    replicaOf: of("replica", "to", "from"),
    replicas: of("replica", "from", "to"),
    retryOf: of("retry", "to", "from"),
    retries: of("retry", "from", "to"),
  };
}

export const WIDTH = 184;
export const HEIGHT = 46;
const ACROSS = 64;
const BELOW = 16;
const SWEEPS = 6;

export interface Node {
  run: FamilyRun;
  layer: number;
  x: number;
  y: number;
}

export interface Edge {
  link: FamilyLink;
  from: Node;
  to: Node;
  critical: boolean;
}

export interface Layout {
  nodes: Node[];
  edges: Edge[];
  width: number;
  height: number;
  /** Ids of the runs that decided when the family ended, or will end; the first run first. */
  critical: string[];
}

/** Lay the family out in layers from left to right: each run is right of those that it came from. */
export function layoutOf({ items, links }: Family): Layout {
  const nodes = new Map(items.map((run) => [run.id, { run, layer: 0, x: 0, y: 0 }]));
  const known = links.filter((link) => nodes.has(link.from) && nodes.has(link.to));
  setLayers(nodes, known);
  const layers: Node[][] = [];
  for (const node of [...nodes.values()].sort((a, b) => (a.run.id < b.run.id ? -1 : 1))) (layers[node.layer] ??= []).push(node);
  arrange(layers, known);
  const tallest = Math.max(1, ...layers.map((layer) => layer.length));
  const height = tallest * (HEIGHT + BELOW) - BELOW;
  layers.forEach((layer, column) => {
    const top = (height - (layer.length * (HEIGHT + BELOW) - BELOW)) / 2;
    layer.forEach((node, row) => Object.assign(node, { x: column * (WIDTH + ACROSS), y: top + row * (HEIGHT + BELOW) }));
  });
  const critical = criticalPath(nodes, known);
  const steps = new Set(critical.slice(1).map((id, index) => `${critical[index]} ${id}`));
  return {
    nodes: layers.flat(),
    edges: known.map((link) => ({ link, from: nodes.get(link.from)!, to: nodes.get(link.to)!, critical: steps.has(`${link.from} ${link.to}`) })),
    width: layers.length * (WIDTH + ACROSS) - ACROSS,
    height,
    critical,
  };
}

/** Give each node the length of the longest way to it. Ids only grow along links, so one pass in their order is enough. */
function setLayers(nodes: Map<string, Node>, links: FamilyLink[]) {
  const before = groupBy(links, (link) => link.to);
  for (const id of [...nodes.keys()].sort()) {
    nodes.get(id)!.layer = Math.max(0, ...(before.get(id) ?? []).map((link) => nodes.get(link.from)!.layer + 1));
  }
}

/** Order each layer by the middle of its neighbours, so that fewer links cross. */
function arrange(layers: Node[][], links: FamilyLink[]) {
  const place = new Map<string, number>();
  const remember = (layer: Node[]) => layer.forEach((node, row) => place.set(node.run.id, row - layer.length / 2));
  layers.forEach(remember);
  const before = groupBy(links, (link) => link.to);
  const after = groupBy(links, (link) => link.from);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const down = sweep % 2 === 0;
    for (const layer of down ? layers : [...layers].reverse()) {
      const middle = (node: Node) => {
        const others = (down ? before : after).get(node.run.id)?.map((link) => place.get(down ? link.from : link.to)!) ?? [];
        return others.length ? others.reduce((sum, each) => sum + each, 0) / others.length : place.get(node.run.id)!;
      };
      const middles = new Map(layer.map((node) => [node, middle(node)]));
      layer.sort((a, b) => middles.get(a)! - middles.get(b)!);
      remember(layer);
    }
  }
}

/** Walk back from the run that ended last, each time to the predecessor that it waited for longest. */
function criticalPath(nodes: Map<string, Node>, links: FamilyLink[]): string[] {
  const before = groupBy(links, (link) => link.to);
  const end = ({ run }: Node) => (run.finished_at ? Date.parse(run.finished_at) : run.state === null ? -Infinity : Infinity);
  const later = (a: Node, b: Node) => (end(b) > end(a) || (end(b) === end(a) && b.layer > a.layer) ? b : a);
  let node: Node | undefined = [...nodes.values()].reduce<Node | undefined>((best, each) => (best ? later(best, each) : each), undefined);
  const path: string[] = [];
  while (node && !path.includes(node.run.id)) {
    path.unshift(node.run.id);
    const from: Node[] = (before.get(node.run.id) ?? []).map((link) => nodes.get(link.from)!);
    node = from.length ? from.reduce(later) : undefined;
  }
  return path.length > 1 ? path : [];
}

function groupBy<T>(items: T[], key: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) groups.set(key(item), [...(groups.get(key(item)) ?? []), item]);
  return groups;
}

/** Data table: sortable headers, j and k move, Enter opens a row, x selects it.
 *
 * Rows keep their place while the pointer is over the table: changes are drawn in place, and new rows wait until the pointer leaves.
 */
import { useCallback, useEffect, useMemo, useRef, useState, type ReactNode } from "react";
import { useWords } from "../../i18n";
import { common } from "../../i18n/common";
import { navigate } from "../../router";
import { Button } from "../forms/Button";
import { useKeys } from "../keys";

export interface Column<T> {
  id: string;
  name: string;
  cell: (row: T) => ReactNode;
  number?: boolean;
  /** `low` hides the column on phones, `lowest` on small screens too. */
  priority?: "low" | "lowest";
  /** Clip long content; the column takes the remaining width. */
  clip?: boolean;
  /** Sort key; makes the column header sortable. The first column is the row header (<th>). */
  sortBy?: (row: T) => string | number | null | undefined;
  width?: string;
}

interface DataTableProps<T> {
  label: string;
  columns: Column<T>[];
  rows: T[] | undefined;
  rowKey: (row: T) => string;
  /** Address that Enter and a click open. */
  to?: (row: T) => string;
  chosen?: ReadonlySet<string>;
  onChoose?: (chosen: Set<string>) => void;
  nameOf?: (row: T) => string;
  empty?: ReactNode;
  /** Number of placeholder rows while the first page loads. */
  expected?: number;
  footer?: ReactNode;
  /** The rows belong to the previous query; the new ones are loading. */
  old?: boolean;
  /** Changes when the user asks for other rows: those are shown at once, also under the pointer. */
  asked?: unknown;
}

interface Sorting {
  column: string;
  down: boolean;
}

export function DataTable<T>(props: DataTableProps<T>) {
  const { label, columns, rowKey, to, chosen, onChoose, nameOf, empty, expected = 8, footer } = props;
  const t = useWords(common);
  const [sorting, setSorting] = useState<Sorting | null>(null);
  const [hovered, setHovered] = useState(false);
  const still = useStill(props.rows, rowKey, hovered, props.asked);
  const rows = useMemo(() => sorted(still, columns, sorting), [still, columns, sorting]);
  const [here, setHere] = useState<string | null>(null);
  const body = useRef<HTMLTableSectionElement>(null);

  const move = (by: number) => {
    if (!rows?.length) return;
    const at = rows.findIndex((row) => rowKey(row) === here);
    const next = Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + by));
    setHere(rowKey(rows[next]!));
    const line = body.current?.rows[next];
    line?.scrollIntoView({ block: "nearest" });
    line?.querySelector<HTMLElement>("a")?.focus({ preventScroll: true });
  };
  const toggle = useCallback(
    (key: string) => {
      const after = new Set(chosen);
      if (!after.delete(key)) after.add(key);
      onChoose?.(after);
    },
    [chosen, onChoose],
  );
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    x: () => here && onChoose && toggle(here),
    Enter: (event) => {
      const row = rows?.find((each) => rowKey(each) === here);
      if (row && to && !(event.target instanceof HTMLAnchorElement) && !(event.target instanceof HTMLButtonElement)) navigate(to(row));
    },
  });

  if (rows && !rows.length && empty) return <>{empty}</>;
  const all = !!rows?.length && rows.every((row) => chosen?.has(rowKey(row)));
  return (
    <>
      <Wrap>
        <table className={props.old ? "table old" : "table"} aria-label={label} aria-busy={!rows || props.old}>
          <thead>
            <tr>
              {onChoose && (
                <th className="choose">
                  <input
                    type="checkbox"
                    aria-label={t.chooseAll}
                    checked={all}
                    disabled={!rows?.length}
                    onChange={() => onChoose(all ? new Set() : new Set(rows?.map(rowKey)))}
                  />
                </th>
              )}
              {columns.map((column) => (
                <Header key={column.id} column={column} sorting={sorting} onSort={setSorting} />
              ))}
            </tr>
          </thead>
          <tbody ref={body} onPointerEnter={() => setHovered(true)} onPointerLeave={() => setHovered(false)}>
            {rows
              ? rows.map((row) => {
                  const key = rowKey(row);
                  return (
                    <tr
                      key={key}
                      data-key={key}
                      data-href={to ? "" : undefined}
                      data-here={here === key ? "" : undefined}
                      aria-selected={onChoose ? (chosen?.has(key) ?? false) : undefined}
                      onClick={(event) => {
                        setHere(key);
                        const target = event.target as HTMLElement;
                        if (!to || target.closest("a, button, input, label, select") || window.getSelection()?.toString()) return;
                        navigate(to(row));
                      }}
                    >
                      {onChoose && (
                        <td className="choose">
                          <input type="checkbox" aria-label={t.choose(nameOf?.(row) ?? key)} checked={chosen?.has(key) ?? false} onChange={() => toggle(key)} />
                        </td>
                      )}
                      {columns.map((column, index) => (
                        <Cell key={column.id} column={column} first={index === 0}>
                          {column.cell(row)}
                        </Cell>
                      ))}
                    </tr>
                  );
                })
              : Array.from({ length: expected }, (_, line) => (
                  <tr key={line} aria-hidden="true">
                    {onChoose && <td className="choose" />}
                    {columns.map((column) => (
                      <td key={column.id} data-priority={column.priority}>
                        <span className="skeleton" style={{ width: `${40 + ((line * 7 + column.name.length * 13) % 45)}%` }} />
                      </td>
                    ))}
                  </tr>
                ))}
          </tbody>
        </table>
      </Wrap>
      {footer}
    </>
  );
}

/** Scrollable wrapper, focusable only if it is too narrow for the table. */
function Wrap({ children }: { children: ReactNode }) {
  const box = useRef<HTMLDivElement>(null);
  const [wide, setWide] = useState(false);
  useEffect(() => {
    const element = box.current!;
    const watching = new ResizeObserver(() => setWide(element.scrollWidth > element.clientWidth));
    watching.observe(element);
    watching.observe(element.firstElementChild!);
    return () => watching.disconnect();
  }, []);
  return (
    <div ref={box} className="table-wrap" tabIndex={wide ? 0 : undefined}>
      {children}
    </div>
  );
}

function Header<T>({ column, sorting, onSort }: { column: Column<T>; sorting: Sorting | null; onSort: (next: Sorting | null) => void }) {
  const t = useWords(common);
  const own = sorting?.column === column.id ? sorting : null;
  const next = !own ? { column: column.id, down: !!column.number } : own.down === !!column.number ? { column: column.id, down: !own.down } : null;
  return (
    <th
      scope="col"
      className={column.number ? "number" : undefined}
      data-priority={column.priority}
      style={column.width ? { width: column.width } : undefined}
      aria-sort={own ? (own.down ? "descending" : "ascending") : undefined}
    >
      {column.sortBy ? (
        <button type="button" title={t.sortBy(column.name)} onClick={() => onSort(next)}>
          {column.name}
          <span aria-hidden="true">{own ? (own.down ? "↓" : "↑") : ""}</span>
        </button>
      ) : (
        column.name
      )}
    </th>
  );
}

function Cell<T>({ column, first, children }: { column: Column<T>; first: boolean; children: ReactNode }) {
  const className = [column.number && "number", column.clip && "clip"].filter(Boolean).join(" ") || undefined;
  return first ? (
    <th scope="row" className={className} data-priority={column.priority}>
      {children}
    </th>
  ) : (
    <td className={className} data-priority={column.priority}>
      {children}
    </td>
  );
}

function sorted<T>(rows: T[] | undefined, columns: Column<T>[], sorting: Sorting | null): T[] | undefined {
  const by = sorting && columns.find((column) => column.id === sorting.column)?.sortBy;
  if (!rows || !by) return rows;
  const way = sorting.down ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [left, right] = [by(a), by(b)];
    if (left == null || right == null) return left == null ? (right == null ? 0 : 1) : -1;
    return left < right ? -way : left > right ? way : 0;
  });
}

/** Return the rows; while the pointer is over the table, in their previous order and without new ones. */
function useStill<T>(rows: T[] | undefined, rowKey: (row: T) => string, hold: boolean, asked: unknown): T[] | undefined {
  const order = useRef<string[]>([]);
  const answered = useRef(asked);
  return useMemo(() => {
    if (!rows) return rows;
    const keys = rows.map(rowKey);
    const byKey = new Map(rows.map((row, index) => [keys[index]!, row]));
    const stays = order.current.filter((key) => byKey.has(key));
    // A different list replaces the rows at once.
    const isAsked = answered.current !== asked;
    answered.current = asked;
    if (!hold || isAsked || !stays.length || stays.length < order.current.length / 2) {
      order.current = keys;
      return rows;
    }
    const last = keys.indexOf(stays[stays.length - 1]!);
    const known = new Set(stays);
    const below = keys.slice(last + 1).filter((key) => !known.has(key)); // the next page, requested by the user
    order.current = [...stays, ...below];
    return order.current.map((key) => byKey.get(key)!);
    // eslint-disable-next-line
  }, [rows, hold, asked]);
}

interface MoreProps {
  count: number;
  hasMore: boolean;
  loading: boolean;
  onMore: () => void;
}

/** Footer of a paged list. */
export function Pagination({ count, hasMore, loading, onMore }: MoreProps) {
  const t = useWords(common);
  return (
    <div className="table-foot">
      <span>{hasMore ? t.shown(count) : `${t.shown(count)}, ${t.all}`}</span>
      {hasMore && (
        <Button small onClick={onMore} busy={loading}>
          {loading ? t.loading : t.more}
        </Button>
      )}
    </div>
  );
}

/** Tile with one number and a link to its rows. */
import type { ReactNode } from "react";
import { Link } from "../../router";
import type { Tone } from "../data/Badge";

interface TileProps {
  name: string;
  value: ReactNode;
  note?: ReactNode;
  tone?: Tone;
  to?: string;
  loading?: boolean;
}

export function Tile({ name, value, note, tone, to, loading }: TileProps) {
  const inside = (
    <>
      <span className="name">{name}</span>
      <span className={tone ? `value tone-${tone}` : "value"}>{loading ? <span className="skeleton" style={{ width: "3rem", height: "1.25rem" }} /> : value}</span>
      <span className="note">{note ?? "\u00a0"}</span>
    </>
  );
  return to ? (
    <Link className="tile" to={to}>
      {inside}
    </Link>
  ) : (
    <div className="tile">{inside}</div>
  );
}

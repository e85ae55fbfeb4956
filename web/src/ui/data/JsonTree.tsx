/** JSON viewer. Integers are exact, and secrets stay hidden as the server sent them. */
import { useState } from "react";
import { writeJson } from "../../api/json";
import { useWords } from "../../i18n";
import { common } from "../../i18n/common";
import { CopyButton } from "../forms/Button";

const MASK = "…";
const MOST = 100;
const LONG = 2_000;

export function JsonTree({ value, label }: { value: unknown; label: string }) {
  return (
    <div className="row" style={{ alignItems: "flex-start", flexWrap: "nowrap" }}>
      <div className="json grow" role="group" aria-label={label}>
        <Node value={value} depth={0} />
      </div>
      <CopyButton text={writeJson(value, 2)} />
    </div>
  );
}

function Node({ value, depth, name }: { value: unknown; depth: number; name?: string }) {
  const title = name === undefined ? null : <span className="name">{name}: </span>;
  if (value !== null && typeof value === "object") return <Branch value={value} depth={depth} name={name} />;
  return (
    <>
      {title}
      <Leaf value={value} />
    </>
  );
}

function Leaf({ value }: { value: unknown }) {
  const t = useWords(common);
  const [whole, setWhole] = useState(false);
  if (value === MASK) return <span className="masked" title={t.secret}>{MASK}</span>;
  if (typeof value === "string") {
    const cut = !whole && value.length > LONG;
    return (
      <span className="string">
        "{cut ? value.slice(0, LONG) : value}"{cut && <button type="button" onClick={() => setWhole(true)}> … {t.expand}</button>}
      </span>
    );
  }
  if (typeof value === "number" || typeof value === "bigint") return <span className="numeric">{writeJson(value)}</span>;
  return <span className="other">{String(value)}</span>;
}

function Branch({ value, depth, name }: { value: object; depth: number; name?: string }) {
  const t = useWords(common);
  const entries = Object.entries(value);
  const [open, setOpen] = useState(depth < 2 && entries.length <= MOST);
  const [most, setMost] = useState(MOST);
  const brackets = Array.isArray(value) ? "[]" : "{}";
  const title = name === undefined ? null : <span className="name">{name}: </span>;
  if (!entries.length) return <>{title}<span className="other">{brackets}</span></>;
  return (
    <>
      <button type="button" aria-expanded={open} aria-label={`${open ? t.collapse : t.expand} ${name ?? ""}`} onClick={() => setOpen(!open)}>
        {open ? "▾" : "▸"}
      </button>{" "}
      {title}
      <span className="quiet">{open ? brackets[0] : `${brackets[0]} ${t.items(entries.length)} ${brackets[1]}`}</span>
      {open && (
        <>
          <ul>
            {entries.slice(0, most).map(([key, item]) => (
              <li key={key}>
                <Node value={item} name={key} depth={depth + 1} />
              </li>
            ))}
            {entries.length > most && (
              <li>
                <button type="button" onClick={() => setMost(most + 1000)}>
                  {t.more}
                </button>
              </li>
            )}
          </ul>
          <span className="quiet">{brackets[1]}</span>
        </>
      )}
    </>
  );
}

/** Completions of the search for runs: filters, and the values that they may have. */
import { useId, useMemo, useState, type KeyboardEvent, type ReactNode } from "react";
import type { Page } from "../../../api/client";
import { useGet } from "../../../api/hooks";
import { useWords } from "../../../i18n";
import { STATES } from "../../../ui";
import { NAMES, quoted } from "../search";
import { findingWords } from "./findingWords";

interface Suggestion {
  /** Text that takes the place of what was typed. */
  text: string;
  about?: string;
}

const MOST = 8;
const PLACES: Record<string, string> = { job: "/jobs", queue: "/queues", schedule: "/schedules", worker: "/workers" };
const TIMES = ["15m", "1h", "6h", "24h", "7d"];

/** Return the last word of a text, which is being typed; null inside quotes. */
function fragmentOf(text: string): string | null {
  return (text.match(/"/g)?.length ?? 0) % 2 ? null : (/\S*$/.exec(text)?.[0] ?? "");
}

export function useCompletion(text: string, onChange: (text: string) => void): { completion: { attributes: object; onKey: (event: KeyboardEvent<HTMLInputElement>) => boolean }; list: ReactNode } {
  const t = useWords(findingWords);
  const id = useId();
  const [focused, setFocused] = useState(false);
  const [closed, setClosed] = useState<string | null>(null);
  const [at, setAt] = useState(-1);
  const fragment = fragmentOf(text);
  const [name, value] = fragment?.includes(":") ? [fragment.slice(0, fragment.indexOf(":")), fragment.slice(fragment.indexOf(":") + 1)] : [null, fragment ?? ""];
  const place = name === null ? undefined : PLACES[name];
  const listed = useGet<Page<{ name?: string; queue?: string; id?: string }>>(null, place ?? "/jobs", { limit: 200 }, { enabled: focused && place !== undefined });
  const found = useMemo<Suggestion[]>(() => {
    if (fragment === null) return [];
    if (name === null) {
      const about = t as unknown as Record<string, string>;
      const names = [...NAMES, "payload"].map((each) => ({ text: each === "payload" ? "payload." : `${each}:`, about: about[each] }));
      return names.filter((each) => each.text.startsWith(value.toLowerCase()));
    }
    const values = name === "state" ? STATES : name === "since" || name === "until" ? TIMES : name === "retried" ? ["true", "false"] : place ? (listed.data?.items.map((item) => (name === "worker" ? item.id : (item.name ?? item.queue)) ?? "") ?? []) : [];
    const wanted = value.replace(/^"/, "").toLowerCase();
    return [...new Set(values)].filter((each) => each.toLowerCase().includes(wanted) && each !== value).map((each) => ({ text: `${name}:${quoted(each)}` }));
  }, [fragment, name, value, place, listed.data, t]);
  const shown = found.slice(0, MOST);
  // An empty box shows nothing by itself: the arrow key opens the list.
  const open = focused && closed !== text && shown.length > 0 && (fragment !== "" || at >= 0);
  const active = open && at >= 0 && at < shown.length ? at : -1;
  const accept = (suggestion: Suggestion) => {
    const whole = !/[:.]$/.test(suggestion.text);
    onChange(text.slice(0, text.length - fragment!.length) + suggestion.text + (whole ? " " : ""));
    setAt(-1);
  };
  const onKey = (event: KeyboardEvent<HTMLInputElement>): boolean => {
    if (event.nativeEvent.isComposing || event.ctrlKey || event.metaKey || event.altKey) return false;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (!shown.length) return false;
      setClosed(null);
      setAt((before) => (event.key === "ArrowDown" ? (before + 1) % shown.length : (before <= 0 ? shown.length : before) - 1));
      return true;
    }
    if (!open) return false;
    if (event.key === "Escape") {
      setClosed(text);
      setAt(-1);
      return true;
    }
    const chosen = active >= 0 ? shown[active] : event.key === "Tab" && !event.shiftKey && value ? shown[0] : undefined;
    if ((event.key !== "Enter" && event.key !== "Tab") || !chosen) return false;
    accept(chosen);
    return true;
  };
  const attributes = {
    "aria-autocomplete": "list",
    "aria-controls": open ? id : undefined,
    "aria-activedescendant": active >= 0 ? `${id}-${active}` : undefined,
    onFocus: () => setFocused(true),
    onBlur: () => {
      setFocused(false);
      setAt(-1);
    },
  };
  const list = open && (
    <ul id={id} role="listbox" aria-label={t.suggestions} className="completions">
      {shown.map((each, place) => (
        <li
          key={each.text}
          id={`${id}-${place}`}
          role="option"
          aria-selected={place === active}
          onPointerDown={(event) => {
            event.preventDefault(); // the box keeps the focus
            accept(each);
          }}
        >
          <code>{each.text}</code>
          {each.about && <span className="quiet">{each.about}</span>}
        </li>
      ))}
    </ul>
  );
  return { completion: { attributes, onKey }, list };
}

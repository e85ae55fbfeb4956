/** Form fields: a label, an input and an error message. */
import { useId, type InputHTMLAttributes, type KeyboardEvent, type ReactElement, type ReactNode, cloneElement } from "react";
import { Icon } from "../icons";

interface FieldProps {
  name: string;
  hint?: ReactNode;
  wrong?: string | null;
  children: ReactElement<{ id?: string; "aria-describedby"?: string; "aria-invalid"?: boolean; className?: string }>;
}

/** Label, hint and error of one `<input>`, `<select>` or `<textarea>`. */
export function Field({ name, hint, wrong, children }: FieldProps) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{name}</label>
      {cloneElement(children, {
        id,
        "aria-describedby": `${id}-about`,
        "aria-invalid": wrong ? true : undefined,
        className: children.props.className ?? "input",
      })}
      <div id={`${id}-about`}>
        {wrong && <div className="wrong" role="alert">{wrong}</div>}
        {hint && <div className="hint">{hint}</div>}
      </div>
    </div>
  );
}

interface SearchBoxProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  onEnter?: (value: string) => void;
  placeholder?: string;
  /** Shortcut key that focuses this box. The first search box of a page with that key wins. */
  shortcut?: string;
  /** Attributes and handlers of a list of completions. `onKey` returns true if it has handled the key. */
  completion?: { attributes: InputHTMLAttributes<HTMLInputElement>; onKey: (event: KeyboardEvent<HTMLInputElement>) => boolean };
}

export function SearchBox({ label, value, onChange, onEnter, placeholder, shortcut, completion }: SearchBoxProps) {
  return (
    <label className="searchbox">
      <span className="unseen">{label}</span>
      <Icon name="search" />
      <input
        className="input"
        type="search"
        value={value}
        placeholder={placeholder}
        spellCheck={false}
        autoComplete="off"
        data-shortcut={shortcut}
        {...completion?.attributes}
        onChange={(event) => onChange(event.target.value)}
        onKeyDown={(event) => {
          if (completion?.onKey(event)) return event.preventDefault();
          if (event.key === "Enter") onEnter?.(value);
          if (event.key === "Escape") event.currentTarget.blur();
        }}
      />
    </label>
  );
}

export interface Chip {
  id: string;
  name: string;
  value?: string;
}

/** Active filters as chips, each with a button to remove it. */
export function FilterChips({ chips, onRemove, removeLabel }: { chips: Chip[]; onRemove: (id: string) => void; removeLabel: (name: string) => string }) {
  if (!chips.length) return null;
  return (
    <ul className="chips">
      {chips.map((chip) => (
        <li key={chip.id} className="chip">
          {chip.value === undefined ? <b className="clip">{chip.name}</b> : <>{chip.name} <b className="clip">{chip.value}</b></>}
          <button type="button" aria-label={removeLabel(chip.value ? `${chip.name} ${chip.value}` : chip.name)} onClick={() => onRemove(chip.id)}>
            ×
          </button>
        </li>
      ))}
    </ul>
  );
}

/** Toggle buttons for a choice of several values. */
export function ChoiceChips<T extends string>({ choices, chosen, onChange, label }: { choices: { id: T; name: ReactNode }[]; chosen: readonly T[]; onChange: (chosen: T[]) => void; label: string }) {
  return (
    <div className="chips" role="group" aria-label={label}>
      {choices.map(({ id, name }) => {
        const on = chosen.includes(id);
        return (
          <button key={id} type="button" className="chip" aria-pressed={on} onClick={() => onChange(on ? chosen.filter((each) => each !== id) : [...chosen, id])}>
            {name}
          </button>
        );
      })}
    </div>
  );
}

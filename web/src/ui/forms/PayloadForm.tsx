/** Payload form: fields from the job's JSON Schema, or plain JSON if the schema is too complex. */
import { useState } from "react";
import { parseJson, writeJson } from "../../api/json";
import { useWords, words } from "../../i18n";
import { useSaid } from "../../i18n/said";
import { Button } from "./Button";
import { Field } from "./Fields";

export interface JsonSchema {
  type?: string | string[];
  properties?: Record<string, JsonSchema>;
  required?: string[];
  additionalProperties?: boolean | JsonSchema;
  enum?: unknown[];
  anyOf?: JsonSchema[];
  default?: unknown;
  description?: string;
  title?: string;
  format?: string;
  [other: string]: unknown;
}

const formWords = words({
  en: {
    asJson: "Edit as JSON",
    asForm: "Edit as form",
    payload: "Payload",
    notJson: "This is not JSON",
    notObject: "A payload must be a JSON object",
    unset: "not set",
    required: "required",
    asDefault: (value: string) => `default ${value}`,
    json: "JSON",
  },
  zh: {
    asJson: "以 JSON 编辑",
    asForm: "以表单编辑",
    payload: "载荷",
    notJson: "这不是 JSON",
    notObject: "载荷必须是 JSON 对象",
    unset: "未填写",
    required: "必填",
    asDefault: (value: string) => `默认值 ${value}`,
    json: "JSON",
  },
});

type Payload = Record<string, unknown>;

interface PayloadFormProps {
  schema: JsonSchema | null | undefined;
  value: Payload;
  /** Called with null while the input is not a valid payload. */
  onChange: (payload: Payload | null) => void;
  /** Error from the server, located by its JSON pointer: `#/payload/name`. */
  wrong?: { pointer?: string; detail: string } | null;
}

/** Form for one job's payload. Set `key` to the job's name, so that another job resets the form. */
export function PayloadForm({ schema, value, onChange, wrong }: PayloadFormProps) {
  const t = useWords(formWords);
  const said = useSaid();
  const problem = wrong && said(wrong.detail);
  const fields = Object.entries(schema?.properties ?? {});
  const possible = fields.length > 0 && Object.keys(value).every((name) => name in (schema?.properties ?? {}));
  const [raw, setRaw] = useState(!possible);
  const place = wrong?.pointer?.replace(/^#\/(payload\/?)?/, "") ?? "";
  return (
    <div className="stack">
      {raw ? (
        <RawJson value={value} onChange={onChange} wrong={problem ?? null} />
      ) : (
        fields.map(([name, part]) => (
          <Property
            key={name}
            name={name}
            schema={part}
            required={schema?.required?.includes(name) ?? false}
            value={value[name]}
            wrong={place === name || place.startsWith(`${name}/`) ? problem! : null}
            onChange={(next) => {
              const { [name]: _, ...rest } = value;
              onChange(next === undefined ? rest : { ...value, [name]: next });
            }}
          />
        ))
      )}
      {!raw && wrong && !fields.some(([name]) => place === name || place.startsWith(`${name}/`)) && (
        <p className="wrong" role="alert">
          {problem}
        </p>
      )}
      {possible && (
        <div>
          <Button small look="plain" onClick={() => setRaw(!raw)}>
            {raw ? t.asForm : t.asJson}
          </Button>
        </div>
      )}
    </div>
  );
}

function RawJson({ value, onChange, wrong }: { value: Payload; onChange: (payload: Payload | null) => void; wrong: string | null }) {
  const t = useWords(formWords);
  const [text, setText] = useState(() => writeJson(value, 2));
  const [problem, setProblem] = useState<string | null>(null);
  const change = (next: string) => {
    setText(next);
    const found = read(next || "{}");
    const fine = found !== undefined && found !== null && typeof found === "object" && !Array.isArray(found);
    setProblem(fine ? null : found === undefined ? t.notJson : t.notObject);
    onChange(fine ? (found as Payload) : null);
  };
  return (
    <Field name={t.payload} wrong={problem ?? wrong}>
      <textarea value={text} spellCheck={false} rows={8} onChange={(event) => change(event.target.value)} />
    </Field>
  );
}

function read(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

interface PropertyProps {
  name: string;
  schema: JsonSchema;
  required: boolean;
  value: unknown;
  wrong: string | null;
  onChange: (value: unknown) => void;
}

/** Return the schema of the only type that is allowed besides null; otherwise the schema itself. */
function kindOf(schema: JsonSchema): JsonSchema {
  const some = schema.anyOf?.filter((part) => part.type !== "null");
  if (some?.length === 1) return { ...some[0], default: schema.default, description: schema.description };
  return schema;
}

function Property({ name, schema: given, required, value, wrong, onChange }: PropertyProps) {
  const t = useWords(formWords);
  const schema = kindOf(given);
  const hint = [schema.description, required ? t.required : schema.default !== undefined ? t.asDefault(writeJson(schema.default)) : null].filter(Boolean).join(" · ");
  const about = { name, hint: hint || undefined, wrong };
  if (schema.enum) {
    return (
      <Field {...about}>
        <select value={value === undefined ? "" : writeJson(value)} onChange={(event) => onChange(event.target.value ? parseJson(event.target.value) : undefined)}>
          <option value="">{t.unset}</option>
          {schema.enum.map((each) => (
            <option key={writeJson(each)} value={writeJson(each)}>
              {typeof each === "string" ? each : writeJson(each)}
            </option>
          ))}
        </select>
      </Field>
    );
  }
  switch (schema.type) {
    case "string":
      return (
        <Field {...about}>
          <input value={value === undefined ? "" : String(value)} onChange={(event) => onChange(event.target.value || (required ? "" : undefined))} />
        </Field>
      );
    case "boolean":
      return (
        <Field {...about}>
          <select value={value === undefined ? "" : String(value)} onChange={(event) => onChange(event.target.value ? event.target.value === "true" : undefined)}>
            <option value="">{t.unset}</option>
            <option value="true">true</option>
            <option value="false">false</option>
          </select>
        </Field>
      );
    default:
      return <JsonField about={about} value={value} onChange={onChange} numeric={schema.type === "integer" || schema.type === "number"} />;
  }
}

interface JsonFieldProps {
  about: { name: string; hint?: string; wrong: string | null };
  value: unknown;
  onChange: (value: unknown) => void;
  numeric: boolean;
}

/** Parse numbers, lists and objects as JSON, so that no number loses a digit. */
function JsonField({ about, value, onChange, numeric }: JsonFieldProps) {
  const t = useWords(formWords);
  const [text, setText] = useState(value === undefined ? "" : writeJson(value));
  const [bad, setBad] = useState(false);
  const change = (next: string) => {
    setText(next);
    const found = next.trim() ? read(next) : undefined;
    setBad(!!next.trim() && found === undefined);
    onChange(next.trim() && found === undefined ? next : found); // let the server report the type error
  };
  return (
    <Field {...about} wrong={bad ? t.notJson : about.wrong}>
      <input value={text} placeholder={numeric ? undefined : t.json} inputMode={numeric ? "decimal" : undefined} spellCheck={false} onChange={(event) => change(event.target.value)} />
    </Field>
  );
}

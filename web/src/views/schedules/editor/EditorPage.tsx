/** Editor of a schedule: form or JSON, with a live preview and a review before saving. */
import { useEffect, useMemo, useState } from "react";
import { api, type Page } from "../../../api/client";
import { useCommand, useGet } from "../../../api/hooks";
import { parseJson, writeJson } from "../../../api/json";
import { problemOf, type Problem } from "../../../api/problem";
import { useWords } from "../../../i18n";
import { useSaid } from "../../../i18n/said";
import { Link, navigate, usePlace } from "../../../router";
import { Button, Card, EmptyState, Field, PageHeader, PayloadForm, ProblemNotice, useToasts, type JsonSchema } from "../../../ui";
import { Preview, usePreview } from "./Preview";
import { editorWords } from "./words";
import { cleaned, differences, isReady, keyOf, told, type Form } from "./form";
import { Choice, Text } from "./inputs";
import { schedulePath } from "../links";
import { PolicyFields, RunFields } from "./PolicyFields";
import { ConflictNotice, ReviewDialog } from "./Review";
import "../schedules.css";
import { TriggerFields } from "./TriggerFields";
import type { Document, Schedule } from "../types";
import { viewName } from "../words";

interface Job {
  name: string;
  description: string | null;
  payload_schema: JsonSchema | null;
}

interface Stored {
  schedule: Schedule;
  etag: string | null;
}

const load = async (name: string): Promise<Stored> => {
  const { value, etag } = await api.getWithEtag<Schedule>(schedulePath(name));
  return { schedule: value, etag };
};

export function NewPage() {
  const { search } = usePlace();
  const job = search.get("job");
  return <Editor stored={null} first={job ? { job } : {}} />;
}

export function EditPage({ params }: { params: Record<string, string> }) {
  const name = params.name!;
  const t = useWords(editorWords);
  const back = { to: schedulePath(name), name };
  const [stored, setStored] = useState<Stored | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    // Load once: a reload would overwrite what the user types.
    load(name).then(setStored, (error: unknown) => setProblem(problemOf(error)));
  }, [name]);
  if (stored) return <Editor stored={stored} first={stored.schedule.definition} />;
  return (
    <>
      <PageHeader title={t.editTitle(name)} back={back} />
      {problem?.status === 404 ? (
        <Card bare>
          <EmptyState title={t.missing} />
        </Card>
      ) : (
        problem && <ProblemNotice problem={problem} />
      )}
    </>
  );
}

function Editor({ stored: first, first: begun }: { stored: Stored | null; first: Document }) {
  const t = useWords(editorWords);
  const said = useSaid();
  const toasts = useToasts();
  const schedules = useWords(viewName).name;
  const [stored, setStored] = useState(first);
  const [document, setDocument] = useState<Document>(begun);
  const [newer, setNewer] = useState<Stored | null>(null);
  const [reviewing, setReviewing] = useState(false);
  const [refused, setRefused] = useState<Problem | null>(null);
  const [whole, setWhole] = useState(false);
  const [broken, setBroken] = useState(false);
  const name = stored?.schedule.name ?? String(document.name ?? "");
  const preview = usePreview(stored ? { ...document, name } : document);
  const base = useMemo<Document>(() => stored?.schedule.definition ?? {}, [stored]);
  const changes = useMemo(() => differences(base, cleaned(document)), [base, document]);

  const save = useCommand(
    () => (stored ? api.put<Schedule>(schedulePath(name), cleaned(document), { ifMatch: stored.etag }) : api.post<Schedule>("/schedules", cleaned(document))),
    "schedules",
  );
  const failed = (problem: Problem) => {
    setReviewing(false);
    if (problem.status !== 412) return setRefused(problem);
    load(name).then(setNewer, toasts.complain);
  };
  const confirm = () =>
    save.mutate(undefined, {
      onSuccess: (saved) => {
        toasts.say({ text: stored ? t.saved(saved.name) : t.created(saved.name), tone: "good" });
        navigate(schedulePath(saved.name));
      },
      onError: failed,
    });
  const rebase = (mine: boolean) => {
    const theirs = newer!.schedule.definition;
    const kept = Object.fromEntries(changes.map(({ key, after }) => [key, after]));
    setDocument(mine ? cleaned({ ...theirs, ...kept }) : theirs);
    setStored(newer);
    setNewer(null);
  };
  const found = Object.fromEntries((isReady(document) ? (preview?.problems ?? []) : []).map(({ key, detail }) => [key ?? "", said(key === "payload" ? detail : told(detail))]));
  const atRefusal = refused && keyOf(refused);
  const form: Form = {
    document,
    set: (given) => {
      setRefused(null);
      setDocument((before) => {
        const after: Document = { ...before, ...given };
        for (const [key, value] of Object.entries(after)) if (value === undefined) delete after[key];
        return after;
      });
    },
    wrong: (key) => (refused && atRefusal === key ? said(told(refused.detail)) : (found[key] ?? null)),
  };
  const title = stored ? t.editTitle(name) : t.newTitle;
  const owner = stored?.schedule.owner;
  const declared = owner && owner !== "api" && !owner.startsWith("job:"); // created by hand, with its job or alone
  return (
    <>
      <PageHeader
        title={title}
        back={stored ? { to: schedulePath(name), name } : { to: "/schedules", name: schedules }}
        about={declared ? t.declared(owner) : undefined}
        actions={
          <>
            <Button look="plain" disabled={broken} onClick={() => setWhole(!whole)}>
              {whole ? t.asForm : t.asJson}
            </Button>
            <Link to={stored ? schedulePath(name) : "/schedules"} className="button">
              {t.cancel}
            </Link>
            <Button look="primary" disabled={broken || !name || !document.job || !isReady(document)} onClick={() => setReviewing(true)}>
              {stored ? t.review : t.reviewNew}
            </Button>
          </>
        }
      />
      {refused && <ProblemNotice problem={refused} />}
      {newer && <ConflictNotice theirs={differences(base, newer.schedule.definition)} mine={new Set(changes.map(({ key }) => key))} keep={() => rebase(true)} take={() => rebase(false)} />}
      <div className="schedules-columns" key={stored?.etag}>
        {whole ? <WholeDocument document={document} onChange={(next) => { setBroken(!next); if (next) { setRefused(null); setDocument(next); } }} /> : <Fields form={form} named={!!stored} />}
        <Preview document={document} preview={preview} />
      </div>
      {reviewing && (
        <ReviewDialog
          title={stored ? t.reviewTitle(name) : t.createTitle(name)}
          action={stored ? t.save : t.create}
          changes={changes}
          busy={save.isPending}
          problem={null}
          close={() => setReviewing(false)}
          confirm={confirm}
        />
      )}
    </>
  );
}

function Fields({ form, named }: { form: Form; named: boolean }) {
  const t = useWords(editorWords);
  const jobs = useGet<Page<Job>>(null, "/jobs", { limit: 500 });
  const names = jobs.data?.items.map((job) => job.name) ?? [];
  const chosen = form.document.job ?? "";
  const job = jobs.data?.items.find((each) => each.name === chosen);
  const known = chosen && !names.includes(chosen) ? [chosen, ...names] : names;
  const wrong = form.wrong("payload");
  return (
    <div className="stack">
      <Card title={t.what}>
        <div className="stack">
          <div className="schedules-fields">
            {!named && <Text form={form} k="name" name={t.name} hint={t.nameHint} />}
            <Choice form={form} k="job" name={t.job} usual="" choices={[["", t.chooseJob], ...known.map((each) => [each, each] as const)]} hint={job?.description ?? (jobs.data && !names.length ? t.noJobs : undefined)} />
          </div>
          <Text form={form} k="description" name={t.description} />
          <label className="row">
            <input type="checkbox" checked={form.document.enabled !== false} onChange={(event) => form.set({ enabled: event.target.checked ? undefined : false })} /> {t.enabled}
          </label>
        </div>
      </Card>
      <Card title={t.when}>
        <TriggerFields form={form} jobs={names} />
      </Card>
      {(job || chosen) && jobs.data && (
        <Card title={t.payload}>
          <div className="stack">
            <p className="quiet">{t.payloadHint}</p>
            <PayloadForm
              key={chosen}
              schema={job?.payload_schema}
              value={(form.document.payload as Record<string, unknown> | undefined) ?? {}}
              onChange={(payload) => payload && form.set({ payload: Object.keys(payload).length ? payload : undefined })}
              wrong={wrong ? { detail: wrong.replace(/^.*payload at [^:]*: /, ""), pointer: pointerIn(wrong) } : null}
            />
          </div>
        </Card>
      )}
      <Card title={t.policies}>
        <PolicyFields form={form} />
      </Card>
      <Card title={t.runs}>
        <RunFields form={form} />
      </Card>
    </div>
  );
}

/** Convert the path in `payload at $.user.age: …` to a JSON pointer. */
function pointerIn(detail: string): string | undefined {
  const path = /payload at \$([^:]*):/.exec(detail)?.[1];
  return path === undefined ? undefined : `#${path.replace(/\.([^.[]+)|\[['"]?([^\]'"]+)['"]?\]/g, (_, name: string, other: string) => `/${name ?? other}`)}`;
}

function WholeDocument({ document, onChange }: { document: Document; onChange: (document: Document | null) => void }) {
  const t = useWords(editorWords);
  const [text, setText] = useState(() => writeJson(cleaned(document), 2));
  const [bad, setBad] = useState(false);
  const change = (next: string) => {
    setText(next);
    let found: unknown;
    try {
      found = parseJson(next);
    } catch {
      found = null;
    }
    const fine = found !== null && typeof found === "object" && !Array.isArray(found);
    setBad(!fine);
    onChange(fine ? (found as Document) : null);
  };
  return (
    <Card title={t.document}>
      <Field name="JSON" wrong={bad ? t.notJson : null}>
        <textarea className="input schedules-whole" value={text} rows={24} spellCheck={false} onChange={(event) => change(event.target.value)} />
      </Field>
    </Card>
  );
}

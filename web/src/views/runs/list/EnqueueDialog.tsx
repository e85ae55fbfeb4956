/** Dialog to enqueue a run of any job. */
import { useState } from "react";
import { api, part, type Page } from "../../../api/client";
import { useCommand, useGet } from "../../../api/hooks";
import type { Run, RunBody } from "../../../api/schema";
import { useWords } from "../../../i18n";
import { useSaid } from "../../../i18n/said";
import { common } from "../../../i18n/common";
import { navigate } from "../../../router";
import { Button, Dialog, Field, PayloadForm, ProblemNotice, useToasts, type JsonSchema } from "../../../ui";
import { runsWords } from "../words";

interface Job {
  name: string;
  description: string | null;
  payload_schema: JsonSchema | null;
}

export function EnqueueDialog({ job: first, onClose }: { job?: string; onClose: () => void }) {
  const t = useWords(runsWords);
  const said = useSaid();
  const both = useWords(common);
  const toasts = useToasts();
  const jobs = useGet<Page<Job>>(null, "/jobs", { limit: 500 });
  const [name, setName] = useState(first ?? "");
  const [payload, setPayload] = useState<Record<string, unknown> | null>({});
  const [delay, setDelay] = useState("");
  const listed = jobs.data?.items.find((each) => each.name === name);
  const other = useGet<Job>(null, `/jobs/${part(name)}`, {}, { enabled: !!name && !!jobs.data && !listed });
  const job = listed ?? other.data;
  const enqueue = useCommand((body: RunBody) => api.post<Run>("/runs", body), "runs");
  const submit = () =>
    enqueue.mutate(
      { job: name, payload: payload ?? {}, ...(delay.trim() ? { delay: delay.trim() } : {}) },
      {
        onSuccess: (run) => {
          toasts.say({ text: `${t.enqueued}: ${run.job}`, tone: "good" });
          onClose();
          navigate(`/runs/${run.id}`);
        },
      },
    );
  const problem = enqueue.error;
  const atPayload = problem?.pointer?.startsWith("#/payload") ?? false;
  return (
    <Dialog title={t.enqueueTitle} open onClose={onClose}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        {jobs.data && !jobs.data.items.length ? (
          <p>{t.noJobs}</p>
        ) : (
          <Field name={t.job} hint={job?.description ?? undefined}>
            <select
              value={name}
              autoFocus
              onChange={(event) => {
                setName(event.target.value);
                setPayload({});
                enqueue.reset();
              }}
            >
              <option value="">{t.chooseJob}</option>
              {jobs.data?.items.map((each) => (
                <option key={each.name} value={each.name}>
                  {each.name}
                </option>
              ))}
            </select>
          </Field>
        )}
        {job && <PayloadForm key={job.name} schema={job.payload_schema} value={payload ?? {}} onChange={setPayload} wrong={atPayload ? problem : null} />}
        {job && (
          <Field name={t.delay} hint={t.delayHint}>
            <input value={delay} onChange={(event) => setDelay(event.target.value)} />
          </Field>
        )}
        {problem && !atPayload && <ProblemNotice problem={problem} />}
        {problem && atPayload && problem.hint && <p className="quiet">{said(problem.hint)}</p>}
        <footer>
          <Button onClick={onClose}>{both.close}</Button>
          <Button type="submit" look="primary" disabled={!job || payload === null} busy={enqueue.isPending}>
            {t.enqueue}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}

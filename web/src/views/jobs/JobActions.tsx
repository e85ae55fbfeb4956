/** Actions on a job. */
import { useState } from "react";
import { api, part } from "../../api/client";
import { useCommand } from "../../api/hooks";
import type { CancelledJob, JobStatus, Run } from "../../api/schema";
import { useWords } from "../../i18n";
import { navigate } from "../../router";
import { Button, ConfirmDialog, Field, Menu, useToasts } from "../../ui";
import { EnqueueDialog } from "../runs/list/EnqueueDialog";
import type { Job } from "./types";
import { jobsWords } from "./words";

type Asking = "run" | "pause" | "resume" | "retry" | "cancel";
interface Props {
  job: Job;
  onClose: () => void;
}

export function JobActions({ job }: { job: Job }) {
  const t = useWords(jobsWords);
  const [asking, setAsking] = useState<Asking | null>(null);
  return (
    <>
      {job.status.state === "paused" ? (
        <Button icon="play" onClick={() => setAsking("resume")}>{t.resume}</Button>
      ) : (
        <Button icon="pause" onClick={() => setAsking("pause")}>{t.pause}</Button>
      )}
      <Menu
        label={`${t.actions}: ${job.name}`}
        icon="chevron"
        className="button"
        entries={[
          { id: "retry", name: t.retry },
          { id: "cancel", name: t.cancel, danger: true },
        ]}
        onAction={(id) => setAsking(id as Asking)}
      />
      <Button look="primary" icon="play" disabled={!job.enabled} title={job.enabled ? undefined : t.disabled} onClick={() => setAsking("run")}>{t.runNow}</Button>
      <Asked asking={asking} job={job} onClose={() => setAsking(null)} />
    </>
  );
}

export function JobMenu({ job }: { job: Job }) {
  const t = useWords(jobsWords);
  const [asking, setAsking] = useState<Asking | null>(null);
  return (
    <>
      <Menu
        label={`${t.actions}: ${job.name}`}
        icon="chevron"
        entries={[
          { id: "run", name: t.runNow, disabled: !job.enabled },
          job.status.state === "paused" ? { id: "resume", name: t.resume } : { id: "pause", name: t.pause },
          { id: "retry", name: t.retry },
          { id: "cancel", name: t.cancel, danger: true },
        ]}
        onAction={(id) => setAsking(id as Asking)}
      />
      <Asked asking={asking} job={job} onClose={() => setAsking(null)} />
    </>
  );
}

function Asked({ asking, job, onClose }: Props & { asking: Asking | null }) {
  if (asking === "run") return <EnqueueDialog job={job.name} onClose={onClose} />;
  if (asking === "pause") return <PauseDialog job={job} onClose={onClose} />;
  if (asking === "resume") return <ResumeDialog job={job} onClose={onClose} />;
  if (asking === "retry") return <RetryDialog job={job} onClose={onClose} />;
  return asking === "cancel" ? <CancelDialog job={job} onClose={onClose} /> : null;
}

function Reason({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const t = useWords(jobsWords);
  return (
    <Field name={t.reason} hint={t.reasonHint}>
      <input value={value} maxLength={1000} onChange={(event) => onChange(event.target.value)} />
    </Field>
  );
}

const why = (reason: string) => (reason.trim() ? { reason: reason.trim() } : {});

function PauseDialog({ job, onClose }: Props) {
  const t = useWords(jobsWords);
  const toasts = useToasts();
  const [reason, setReason] = useState("");
  const resume = useCommand(() => api.post<JobStatus>(`/jobs/${part(job.name)}/resume`, {}), "runs");
  const pause = useCommand(() => api.post<JobStatus>(`/jobs/${part(job.name)}/pause`, why(reason)), "runs");
  const confirm = () =>
    pause.mutate(undefined, {
      onSuccess: () => {
        toasts.say({ text: t.pauseDone(job.name), undo: () => resume.mutate(undefined, { onError: toasts.complain }) });
        onClose();
      },
    });
  return (
    <ConfirmDialog title={t.pauseTitle(job.name)} open onClose={onClose} consequence={t.pauseAbout(job.status.waiting)} action={t.pause} busy={pause.isPending} problem={pause.error} onConfirm={confirm}>
      <Reason value={reason} onChange={setReason} />
    </ConfirmDialog>
  );
}

function ResumeDialog({ job, onClose }: Props) {
  const t = useWords(jobsWords);
  const toasts = useToasts();
  const [mode, setMode] = useState("skip");
  const resume = useCommand((catch_up: string) => api.post<JobStatus>(`/jobs/${part(job.name)}/resume`, { catch_up }), "runs");
  const confirm = () =>
    resume.mutate(mode, {
      onSuccess: () => {
        toasts.say({ text: t.resumeDone(job.name), tone: "good" });
        onClose();
      },
    });
  return (
    <ConfirmDialog title={t.resumeTitle(job.name)} open onClose={onClose} consequence={t.resumeAbout} action={t.resume} busy={resume.isPending} problem={resume.error} onConfirm={confirm}>
      <Field name={t.catchUp}>
        <select value={mode} onChange={(event) => setMode(event.target.value)}>
          <option value="skip">{t.skip}</option>
          <option value="latest">{t.latest}</option>
          <option value="all">{t.all}</option>
        </select>
      </Field>
    </ConfirmDialog>
  );
}

function CancelDialog({ job, onClose }: Props) {
  const t = useWords(jobsWords);
  const toasts = useToasts();
  const [reason, setReason] = useState("");
  const cancel = useCommand(() => api.post<CancelledJob>(`/jobs/${part(job.name)}/cancel`, why(reason)), "runs");
  const confirm = () =>
    cancel.mutate(undefined, {
      onSuccess: (done) => {
        toasts.say(t.cancelDone(done.cancelled));
        onClose();
      },
    });
  const live = job.status.running + job.status.waiting;
  return (
    <ConfirmDialog title={t.cancelTitle(job.name)} open onClose={onClose} consequence={t.cancelAbout(live)} action={t.cancelAction} danger busy={cancel.isPending} problem={cancel.error} onConfirm={confirm}>
      <Reason value={reason} onChange={setReason} />
    </ConfirmDialog>
  );
}

function RetryDialog({ job, onClose }: Props) {
  const t = useWords(jobsWords);
  const toasts = useToasts();
  const [key] = useState(() => crypto.randomUUID?.() ?? String(Math.random()));
  const retry = useCommand(() => api.post<Run>(`/jobs/${part(job.name)}/retry`, undefined, { idempotencyKey: key }), "runs");
  const confirm = () =>
    retry.mutate(undefined, {
      onSuccess: (made) => {
        toasts.say({ text: t.retryDone, tone: "good" });
        onClose();
        navigate(`/runs/${made.id}`);
      },
    });
  return <ConfirmDialog title={t.retryTitle(job.name)} open onClose={onClose} consequence={t.retryAbout} action={t.retry} busy={retry.isPending} problem={retry.error} onConfirm={confirm} />;
}

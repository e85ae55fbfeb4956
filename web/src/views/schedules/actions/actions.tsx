/** Actions on one schedule, with their confirmation dialogs. */
import { useState, type ReactNode } from "react";
import { api, part } from "../../../api/client";
import { useCommand, useMay } from "../../../api/hooks";
import type { Problem } from "../../../api/problem";
import type { Run } from "../../../api/schema";
import { useWords } from "../../../i18n";
import { useSaid } from "../../../i18n/said";
import { navigate } from "../../../router";
import { ConfirmDialog, Field, useToasts, type MenuEntry } from "../../../ui";
import { BackfillDialog } from "./BackfillDialog";
import type { Schedule } from "../types";
import { schedulesWords } from "../words";

export type Asked = "pause" | "resume" | "disable" | "delete" | "force" | "backfill";

export interface Acting {
  /** Run an action, after a confirmation where one is required. */
  act: (action: string, schedule: Schedule) => void;
  busy: boolean;
  /** Menu entries that the user may run on the schedule now. */
  entries: (schedule: Schedule) => MenuEntry[];
  /** Open dialog; render it once. */
  dialogs: ReactNode;
}

const path = (schedule: Schedule, more = "") => `/schedules/${part(schedule.name)}${more}`;

const switched = (schedule: Schedule, action: "enable" | "disable") => api.post<Schedule>(path(schedule, `/${action}`), {});

export function useActions(gone?: () => void): Acting {
  const t = useWords(schedulesWords);
  const toasts = useToasts();
  const operator = useMay("operator");
  const admin = useMay("admin");
  const [asked, setAsked] = useState<{ what: Asked; schedule: Schedule } | null>(null);
  const close = () => setAsked(null);
  const trigger = useCommand(
    ({ schedule, force }: { schedule: Schedule; force: boolean }) => api.post<{ items: Run[] }>(path(schedule, "/trigger"), { force }),
    "schedules",
    "runs",
  );
  const enable = useCommand((schedule: Schedule) => switched(schedule, "enable"), "schedules");
  const run = (schedule: Schedule, force: boolean) =>
    trigger.mutate(
      { schedule, force },
      {
        onSuccess: ({ items }) => {
          close();
          toasts.say({ text: t.started(schedule.name, items.length), tone: "good" });
        },
        onError: (problem) => (problem.code === "overlapping" && !force ? setAsked({ what: "force", schedule }) : toasts.complain(problem)),
      },
    );
  const act = (action: string, schedule: Schedule) => {
    if (action === "run") run(schedule, false);
    else if (action === "edit") navigate(path(schedule, "/edit"));
    else if (action === "enable") enable.mutate(schedule, { onSuccess: () => toasts.say({ text: t.wasEnabled(schedule.name), tone: "good" }), onError: toasts.complain });
    else setAsked({ what: action as Asked, schedule });
  };
  const entries = (schedule: Schedule): MenuEntry[] => [
    ...(operator ? [{ id: "run", name: t.runNow }] : []),
    ...(operator ? [schedule.paused_at ? { id: "resume", name: t.resume } : { id: "pause", name: t.pause, disabled: schedule.state === "ended" }] : []),
    ...(operator ? [schedule.enabled ? { id: "disable", name: t.disable } : { id: "enable", name: t.enable }] : []),
    ...(operator && hasPlanTimes(schedule) ? [{ id: "backfill", name: t.backfill }] : []),
    ...(admin ? [{ id: "edit", name: t.edit }, { id: "delete", name: t.remove, danger: true }] : []),
  ];
  return {
    act,
    entries,
    busy: trigger.isPending || enable.isPending,
    dialogs: asked && <Dialogs key={asked.what + asked.schedule.name} {...asked} close={close} gone={gone} force={() => run(asked.schedule, true)} forcing={trigger.isPending} forceProblem={trigger.error} />,
  };
}

export const hasPlanTimes = ({ definition }: Schedule) => definition.after === undefined && definition.following === undefined;

interface DialogsProps {
  what: Asked;
  schedule: Schedule;
  close: () => void;
  gone?: () => void;
  force: () => void;
  forcing: boolean;
  forceProblem: Problem | null;
}

function Dialogs({ what, schedule, close, gone, force, forcing, forceProblem }: DialogsProps) {
  const t = useWords(schedulesWords);
  const said = useSaid();
  if (what === "pause") return <PauseDialog schedule={schedule} close={close} />;
  if (what === "resume") return <ResumeDialog schedule={schedule} close={close} />;
  if (what === "backfill") return <BackfillDialog schedule={schedule} close={close} />;
  if (what === "force") {
    const about = (
      <>
        {forceProblem && <p>{said(forceProblem.detail)}</p>}
        <p>{t.forceAbout}</p>
      </>
    );
    return <ConfirmDialog open title={t.forceTitle(schedule.name)} consequence={about} action={t.force} busy={forcing} onClose={close} onConfirm={force} />;
  }
  return <EndDialog what={what} schedule={schedule} close={close} gone={gone} />;
}

function PauseDialog({ schedule, close }: { schedule: Schedule; close: () => void }) {
  const t = useWords(schedulesWords);
  const toasts = useToasts();
  const [reason, setReason] = useState("");
  const [until, setUntil] = useState("");
  const undo = useCommand(() => api.post(path(schedule, "/resume"), {}), "schedules");
  const pause = useCommand(() => api.post(path(schedule, "/pause"), { reason: reason.trim() || null, until: until.trim() || null }), "schedules");
  const done = () => {
    close();
    toasts.say({ text: t.wasPaused(schedule.name), undo: () => undo.mutate(undefined, { onError: toasts.complain }) });
  };
  const confirm = () => pause.mutate(undefined, { onSuccess: done });
  return (
    <ConfirmDialog open title={t.pauseTitle(schedule.name)} consequence={t.pauseAbout} action={t.pause} busy={pause.isPending} problem={pause.error} onClose={close} onConfirm={confirm}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          confirm();
        }}
      >
        <Field name={t.reason} hint={t.reasonHint}>
          <input value={reason} maxLength={1000} onChange={(event) => setReason(event.target.value)} />
        </Field>
        <Field name={t.until} hint={t.untilHint}>
          <input value={until} placeholder="2h" spellCheck={false} onChange={(event) => setUntil(event.target.value)} />
        </Field>
        <button type="submit" hidden />
      </form>
    </ConfirmDialog>
  );
}

function ResumeDialog({ schedule, close }: { schedule: Schedule; close: () => void }) {
  const t = useWords(schedulesWords);
  const toasts = useToasts();
  const [mode, setMode] = useState("skip");
  const resume = useCommand(() => api.post(path(schedule, "/resume"), { catch_up: mode }), "schedules");
  const done = () => {
    close();
    toasts.say({ text: t.wasResumed(schedule.name), tone: "good" });
  };
  const choices = [["skip", t.catchSkip], ["latest", t.catchLatest], ["all", t.catchAll]] as const;
  return (
    <ConfirmDialog open title={t.resumeTitle(schedule.name)} consequence={hasPlanTimes(schedule) ? t.resumeAbout : ""} action={t.resume} busy={resume.isPending} problem={resume.error} onClose={close} onConfirm={() => resume.mutate(undefined, { onSuccess: done })}>
      {hasPlanTimes(schedule) && (
        <div className="schedules-choices" role="radiogroup" aria-label={t.resumeAbout}>
          {choices.map(([id, name]) => (
            <label key={id}>
              <input type="radio" name="catch_up" value={id} checked={mode === id} onChange={() => setMode(id)} /> {name}
            </label>
          ))}
        </div>
      )}
    </ConfirmDialog>
  );
}

function EndDialog({ what, schedule, close, gone }: { what: Asked; schedule: Schedule; close: () => void; gone?: () => void }) {
  const t = useWords(schedulesWords);
  const toasts = useToasts();
  const deleting = what === "delete";
  // Not by `onSuccess` of `mutate`: that comes after the page was read again, and a deleted schedule's page has no dialog.
  const end = useCommand(() => (deleting ? api.delete<unknown>(path(schedule)) : switched(schedule, "disable")).then(done), "schedules");
  const enable = useCommand(() => switched(schedule, "enable"), "schedules");
  const done = () => {
    close();
    if (deleting) {
      toasts.say(t.wasDeleted(schedule.name));
      gone?.();
    } else toasts.say({ text: t.wasDisabled(schedule.name), undo: () => enable.mutate(undefined, { onError: toasts.complain }) });
  };
  return (
    <ConfirmDialog
      open
      danger={deleting}
      title={deleting ? t.deleteTitle(schedule.name) : t.disableTitle(schedule.name)}
      consequence={deleting ? t.deleteAbout : t.disableAbout}
      action={deleting ? t.deleteAction : t.disable}
      busy={end.isPending}
      problem={end.error}
      onClose={close}
      onConfirm={() => end.mutate(undefined)}
    />
  );
}

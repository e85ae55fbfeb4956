/** Dialog for a backfill: choose a range, count, then create the runs. */
import { useState } from "react";
import { api, part } from "../../../api/client";
import { useCommand } from "../../../api/hooks";
import type { Backfill } from "../../../api/schema";
import { useWords } from "../../../i18n";
import { common } from "../../../i18n/common";
import { Link } from "../../../router";
import { Button, Dialog, Facts, Field, ProblemNotice, useAbsolute } from "../../../ui";
import { backfillWords } from "./backfillWords";
import { runsOf } from "../links";
import type { Schedule } from "../types";

const RAN = ["none", "failed", "all"] as const;

/** Format for `<input type="datetime-local">`, in the browser's zone. */
function local(at: Date): string {
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export function BackfillDialog({ schedule, close }: { schedule: Schedule; close: () => void }) {
  const t = useWords(backfillWords);
  const both = useWords(common);
  const [from, setFrom] = useState(() => local(new Date(Date.now() - 86_400_000)));
  const [to, setTo] = useState(() => local(new Date()));
  const [ran, setRan] = useState<string>("none");
  const [concurrency, setConcurrency] = useState("1");
  const ready = !!from && !!to && Number(concurrency) >= 1;
  const body = (dry: boolean) => ({ from: new Date(from).toISOString(), to: new Date(to).toISOString(), ran, concurrency: Number(concurrency), dry_run: dry });
  const send = (dry: boolean) => api.post<Backfill>(`/schedules/${part(schedule.name)}/backfill`, body(dry));
  const count = useCommand(() => send(true));
  const make = useCommand(() => send(false), "schedules", "runs");
  const changed = <T,>(set: (value: T) => void) => (value: T) => {
    set(value);
    count.reset();
    make.reset();
  };
  const seen = make.data ?? count.data;
  return (
    <Dialog title={t.title(schedule.name)} open onClose={close}>
      <p className="quiet">{t.about}</p>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (ready) count.mutate(undefined);
        }}
      >
        <div className="schedules-fields">
          <Field name={t.from} hint={t.zone}>
            <input type="datetime-local" value={from} onChange={(event) => changed(setFrom)(event.target.value)} />
          </Field>
          <Field name={t.to}>
            <input type="datetime-local" value={to} onChange={(event) => changed(setTo)(event.target.value)} />
          </Field>
          <Field name={t.ran}>
            <select value={ran} onChange={(event) => changed(setRan)(event.target.value)}>
              {RAN.map((each) => (
                <option key={each} value={each}>
                  {t[`ran_${each}`]}
                </option>
              ))}
            </select>
          </Field>
          <Field name={t.concurrency}>
            <input type="number" min={1} max={10000} value={concurrency} onChange={(event) => changed(setConcurrency)(event.target.value)} />
          </Field>
        </div>
        {seen && <Counted seen={seen} schedule={schedule} />}
        {(make.error ?? count.error) && <ProblemNotice problem={(make.error ?? count.error)!} />}
        <footer>
          <Button onClick={close}>{make.data ? both.close : both.notNow}</Button>
          {!make.data && (count.data?.count ?? 0) > 0 ? (
            <Button look="primary" busy={make.isPending} onClick={() => make.mutate(undefined)}>
              {t.make(count.data!.count)}
            </Button>
          ) : (
            !make.data && (
              <Button type="submit" look="primary" disabled={!ready} busy={count.isPending}>
                {t.count}
              </Button>
            )
          )}
        </footer>
      </form>
    </Dialog>
  );
}

function Counted({ seen, schedule }: { seen: Backfill; schedule: Schedule }) {
  const t = useWords(backfillWords);
  const absolute = useAbsolute(schedule.timezone);
  const first = seen.plan_times[0];
  return (
    <div className={`notice tone-${seen.count ? "busy" : "idle"}`} role="status">
      <strong>{seen.dry_run ? (seen.count ? t.would(seen.count) : t.nothing) : t.made(seen.count)}</strong>
      <Facts
        items={[
          first ? [t.first, absolute(first)] : null,
          seen.retried > 0 && [t.retried, seen.retried],
          seen.already > 0 && [t.already, seen.already],
          seen.known > 0 && [t.known, seen.known],
          seen.pending > 0 && [t.pending, seen.pending],
          seen.held > 0 && [t.held, seen.held],
        ]}
      />
      {!seen.dry_run && seen.count > 0 && <Link to={runsOf(schedule.name)}>{t.toRuns}</Link>}
    </div>
  );
}

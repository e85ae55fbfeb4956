/** Simulation of a schedule with other policies, longer runs or failures, compared with the current policies. */
import { useState } from "react";
import { api } from "../../../api/client";
import { useCommand } from "../../../api/hooks";
import type { SimulationReport, SimulatedRun } from "../../../api/schema";
import { useWords } from "../../../i18n";
import { Badge, Button, Card, DataTable, Field, ProblemNotice, duration, useAbsolute, type Column, type Shown, type Tone } from "../../../ui";
import { detailWords } from "./words";
import { schedulePath } from "../links";
import { CATCH_UPS, FAILURES, OVERLAPS } from "../modes";
import { modeWord, policyWords } from "../policies";
import type { Schedule } from "../types";

const COUNTS = ["run", "failed", "skipped", "cancelled", "covered", "missed"] as const;
const LOOKS: Record<string, [Tone, Shown]> = {
  run: ["good", "succeeded"],
  failed: ["bad", "failed"],
  skipped: ["idle", "skipped"],
  cancelled: ["idle", "cancelled"],
  covered: ["idle", "queued"],
  missed: ["warn", "expired"],
};
const SHOWN = 50;

interface Both {
  asIs: SimulationReport;
  other: SimulationReport;
}

export function Simulation({ schedule }: { schedule: Schedule }) {
  const t = useWords(detailWords);
  const [span, setSpan] = useState("1d");
  const [takes, setTakes] = useState("");
  const [failEvery, setFailEvery] = useState("");
  const [workers, setWorkers] = useState("");
  const [policies, setPolicies] = useState({ overlap: "", catch_up: "", failure: "" });
  const send = (changes: object) =>
    api.post<SimulationReport>(`${schedulePath(schedule.name)}/simulate`, { span, duration: takes.trim() || null, fail_every: failEvery ? Number(failEvery) : null, workers: workers ? Number(workers) : null, changes, limit: SHOWN });
  const simulate = useCommand(async (): Promise<Both> => {
    const changes = Object.fromEntries(Object.entries(policies).filter(([, mode]) => mode));
    const [asIs, other] = await Promise.all([send({}), send(changes)]);
    return { asIs, other };
  });
  return (
    <div className="schedules-halves">
      <Card title={t.simulate}>
        <form
          className="stack"
          onSubmit={(event) => {
            event.preventDefault();
            simulate.mutate(undefined);
          }}
        >
          <p className="quiet">{t.simulateAbout}</p>
          <div className="schedules-fields">
            <Field name={t.horizon}>
              <select value={span} onChange={(event) => setSpan(event.target.value)}>
                {["1h", "6h", "1d", "7d", "30d", "365d"].map((each) => (
                  <option key={each}>{each}</option>
                ))}
              </select>
            </Field>
            <Field name={t.runsTake} hint={t.runsTakeHint}>
              <input value={takes} placeholder={simulate.data?.asIs.schedules[0]?.durations ?? "–"} spellCheck={false} onChange={(event) => setTakes(event.target.value)} />
            </Field>
            <Field name={t.failEvery}>
              <input type="number" min={1} value={failEvery} placeholder="–" onChange={(event) => setFailEvery(event.target.value)} />
            </Field>
            <Field name={t.workers} hint={t.workersHint}>
              <input type="number" min={1} value={workers} placeholder="–" onChange={(event) => setWorkers(event.target.value)} />
            </Field>
          </div>
          <Policies policies={policies} onChange={setPolicies} />
          {simulate.error && <ProblemNotice problem={simulate.error} />}
          <div>
            <Button type="submit" look="primary" busy={simulate.isPending}>
              {t.simulate}
            </Button>
          </div>
        </form>
      </Card>
      {simulate.data && <Result {...simulate.data} schedule={schedule} />}
    </div>
  );
}

interface PoliciesProps {
  policies: { overlap: string; catch_up: string; failure: string };
  onChange: (policies: { overlap: string; catch_up: string; failure: string }) => void;
}

function Policies({ policies, onChange }: PoliciesProps) {
  const t = useWords(detailWords);
  const p = useWords(policyWords);
  const some = [
    ["overlap", p.overlap, OVERLAPS],
    ["catch_up", p.catch_up, CATCH_UPS],
    ["failure", p.failure, FAILURES],
  ] as const;
  return (
    <div className="schedules-fields">
      {some.map(([key, name, modes]) => (
        <Field key={key} name={name}>
          <select value={policies[key]} onChange={(event) => onChange({ ...policies, [key]: event.target.value })}>
            <option value="">{t.asIs}</option>
            {modes.map((mode) => (
              <option key={mode} value={mode}>
                {modeWord(mode, p)}
              </option>
            ))}
          </select>
        </Field>
      ))}
    </div>
  );
}

const later = (milliseconds: number) => (milliseconds < 1_000 ? "+0s" : `+${duration(milliseconds)}`);

function Result({ asIs, other, schedule }: Both & { schedule: Schedule }) {
  const t = useWords(detailWords);
  const absolute = useAbsolute(schedule.timezone);
  const columns: Column<SimulatedRun>[] = [
    { id: "at", name: t.planTime, cell: (one) => <time dateTime={one.plan_time}>{absolute(one.plan_time)}</time> },
    {
      id: "kind",
      name: t.kind,
      cell: (one) => {
        const [tone, shape] = LOOKS[one.kind] ?? ["idle", "queued"];
        return (
          <Badge tone={tone} shape={shape}>
            {(one.count ?? 1) > 1 ? `${t[`sim_${one.kind as "run"}`] ?? one.kind} × ${one.count}` : (t[`sim_${one.kind as "run"}`] ?? one.kind)}
          </Badge>
        );
      },
    },
    { id: "from", name: t.begins, cell: (one) => (one.started_at ? later(Date.parse(one.started_at) - Date.parse(one.plan_time)) : "–"), number: true, priority: "low" },
    { id: "reason", name: t.reason, cell: (one) => <span className="quiet hostile">{one.reason?.replaceAll("_", " ") ?? ""}</span>, priority: "low" },
  ];
  return (
    <div className="stack">
      <Card title={t.result} bare>
        <div className="table-wrap" role="status">
          <table className="table" aria-label={t.result}>
            <thead>
              <tr>
                <th scope="col">{t.kind}</th>
                <th scope="col" className="number">{t.nowPolicy}</th>
                <th scope="col" className="number">{t.otherPolicy}</th>
              </tr>
            </thead>
            <tbody>
              {COUNTS.map((kind) => (
                <tr key={kind}>
                  <th scope="row">{t[`sim_${kind}`]}</th>
                  <td className="number">{(asIs.counts[kind] ?? 0).toLocaleString()}</td>
                  <td className="number" data-changed={asIs.counts[kind] !== other.counts[kind] || undefined}>
                    {(other.counts[kind] ?? 0).toLocaleString()}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </Card>
      <Card title={t.firstEvents} bare>
        <DataTable label={t.firstEvents} columns={columns} rows={other.events} rowKey={(one) => `${one.plan_time} ${one.scope ?? ""} ${one.kind} ${one.attempt} ${one.started_at ?? ""}`} />
      </Card>
    </div>
  );
}

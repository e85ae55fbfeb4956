/** Preview of the edited schedule: rule in words, next runs and errors. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api } from "../../../api/client";
import { writeJson } from "../../../api/json";
import type { Problem } from "../../../api/problem";
import type { Difference, SimulationReport } from "../../../api/schema";
import { useWords } from "../../../i18n";
import { useSaid } from "../../../i18n/said";
import { Card, useRested } from "../../../ui";
import { editorWords } from "./words";
import { NextRuns } from "../NextRuns";
import { cleaned, isReady } from "./form";
import { policyWords, sentences } from "../policies";
import { useRule } from "../rules";
import type { Document } from "../types";

/** What the document would be as a schedule, and its next plan times. */
export type Draft = Difference & Pick<SimulationReport, "fires">;

/** Ask what the document would do, after a short pause in typing. */
export function usePreview(document: Document): Draft | undefined {
  const text = useRested(writeJson(cleaned(document)), 250);
  const report = useQuery<SimulationReport, Problem>({
    queryKey: ["schedules:simulate", text],
    queryFn: ({ signal }) => api.post<SimulationReport>("/schedules:simulate", { documents: [cleaned(document)], span: "0s", limit: 10 }, { signal }),
    enabled: isReady(document),
    placeholderData: keepPreviousData,
    staleTime: 30_000,
  }).data;
  return report && { ...report.schedules[0]!, fires: report.fires };
}

export function Preview({ document, preview }: { document: Document; preview: Draft | undefined }) {
  const t = useWords(editorWords);
  const said = useSaid();
  const p = useWords(policyWords);
  const rule = useRule();
  const shown = isReady(document) ? preview : undefined;
  return (
    <div className="stack schedules-echo">
      <Card title={t.summary}>
        <div role="status" className="stack" aria-live="polite">
          {shown?.rule ? (
            <>
              <p className="schedules-said hostile">{rule({ rule: shown.rule, definition: document, timezone: shown.timezone })}</p>
              <ul className="schedules-sentences quiet">
                {sentences(cleaned(document), p).map(([name, sentence]) => (
                  <li key={name}>{sentence}</li>
                ))}
              </ul>
            </>
          ) : (
            !shown?.problems.length && <p className="quiet">{t.noSummary}</p>
          )}
          {shown?.problems.map((problem) => (
            <div key={problem.detail} className="notice tone-warn">
              <strong>{t.wrong}</strong>
              <span>{said(problem.detail.replace(/^schedule '[^']*': /, ""))}</span>
              {problem.hint && <span className="quiet">{said(problem.hint)}</span>}
            </div>
          ))}
        </div>
      </Card>
      {shown?.rule && (
        <Card title={t.fires} bare>
          {shown.fires.length ? <NextRuns fires={shown.fires} zone={shown.timezone} scrolls /> : <p className="inside quiet">{t.noFires}</p>}
        </Card>
      )}
    </div>
  );
}

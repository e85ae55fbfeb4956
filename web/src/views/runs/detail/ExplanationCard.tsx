/** Explanation of a run's state in the server's sentences, and the progress of a cancellation. */
import type { Event, Explanation, Run } from "../../../api/schema";
import { useWords } from "../../../i18n";
import { Card, Time } from "../../../ui";
import { Sentence } from "./Sentence";
import { runsWords } from "../words";

export function ExplanationCard({ explanation }: { explanation: Explanation | undefined }) {
  const t = useWords(runsWords);
  return (
    <Card title={t.explain}>
      {explanation ? (
        <ul className="run-why">
          {explanation.words.map((words) => (
            <li key={words} className="hostile">
              <Sentence text={words} />
            </li>
          ))}
        </ul>
      ) : (
        <span className="skeleton" style={{ width: "70%" }} />
      )}
    </Card>
  );
}

export function CancelPhase({ run, explanation, events }: { run: Run; explanation: Explanation | undefined; events: Event[] | undefined }) {
  const t = useWords(runsWords);
  const request = events?.findLast((event) => event.to === "cancelling");
  return (
    <div className="notice tone-warn" role="status">
      <strong>
        {t.cancelAsked}
        {run.cancelled_by ? ` · ${run.cancelled_by}` : ""} {request && <Time at={request.at} />}
      </strong>
      {run.reason && <span>{run.reason}</span>}
      {(explanation?.verdict === "cancelling" ? explanation.words.slice(1) : [t.phaseAsked]).map((words) => (
        <span key={words}>
          <Sentence text={words} />
        </span>
      ))}
    </div>
  );
}

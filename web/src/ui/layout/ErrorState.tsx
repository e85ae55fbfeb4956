/** Error message in place; the rest of the page stays. */
import type { Problem } from "../../api/problem";
import { useWords } from "../../i18n";
import { common } from "../../i18n/common";
import { useSaid } from "../../i18n/said";
import { Button } from "../forms/Button";

export function ProblemNotice({ problem, onRetry }: { problem: Problem; onRetry?: () => void }) {
  const t = useWords(common);
  const said = useSaid();
  return (
    <div className="notice tone-bad" role="alert">
      <strong>{problem.away ? t.away : t.went}</strong>
      {!problem.away && <span>{said(problem.detail)}</span>}
      {problem.hint && <span className="quiet">{said(problem.hint)}</span>}
      {problem.status >= 500 && problem.requestId && <span className="quiet mono">{t.request(problem.requestId)}</span>}
      {onRetry && (
        <Button small icon="retry" onClick={onRetry}>
          {t.tryAgain}
        </Button>
      )}
    </div>
  );
}

export const ErrorState = ProblemNotice;

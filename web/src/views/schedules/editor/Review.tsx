/** Review of changes before saving, and the notice about concurrent changes. */
import type { Problem } from "../../../api/problem";
import { useWords } from "../../../i18n";
import { common } from "../../../i18n/common";
import { Badge, Button, Dialog, ProblemNotice } from "../../../ui";
import { editorWords } from "./words";
import { written, type Difference } from "./form";

export function Differences({ items, label, marked }: { items: Difference[]; label: string; marked?: ReadonlySet<string> }) {
  const t = useWords(editorWords);
  return (
    <div className="schedules-scroll schedules-diff" tabIndex={0}>
      <table className="table" aria-label={label}>
        <thead>
          <tr>
            <th scope="col">{t.field}</th>
            <th scope="col">{t.before}</th>
            <th scope="col">{t.now}</th>
          </tr>
        </thead>
        <tbody>
          {items.map(({ key, before, after }) => (
            <tr key={key}>
              <th scope="row">
                <code>{key}</code> {marked?.has(key) && <Badge tone="warn">{t.both}</Badge>}
              </th>
              <td>{before === undefined ? <span className="quiet">–</span> : <pre className="tone-bad hostile">− {written(before)}</pre>}</td>
              <td>{after === undefined ? <span className="quiet">–</span> : <pre className="tone-good hostile">+ {written(after)}</pre>}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface ReviewProps {
  title: string;
  action: string;
  changes: Difference[];
  busy: boolean;
  problem: Problem | null;
  close: () => void;
  confirm: () => void;
}

export function ReviewDialog({ title, action, changes, busy, problem, close, confirm }: ReviewProps) {
  const t = useWords(editorWords);
  const both = useWords(common);
  return (
    <Dialog title={title} open wide alert onClose={close}>
      <p className="quiet">{changes.length ? t.changes(changes.length) : t.noChanges}</p>
      {changes.length > 0 && <Differences items={changes} label={t.changes(changes.length)} />}
      {problem && <ProblemNotice problem={problem} />}
      <footer>
        <Button onClick={close}>{both.close}</Button>
        <Button look="primary" disabled={!changes.length} busy={busy} onClick={confirm} autoFocus>
          {action}
        </Button>
      </footer>
    </Dialog>
  );
}

interface ConflictProps {
  theirs: Difference[];
  mine: ReadonlySet<string>;
  keep: () => void;
  take: () => void;
}

export function ConflictNotice({ theirs, mine, keep, take }: ConflictProps) {
  const t = useWords(editorWords);
  return (
    <div className="notice tone-warn schedules-meanwhile" role="alert">
      <strong>{t.meanwhile}</strong>
      <span>{t.meanwhileAbout}</span>
      <Differences items={theirs} label={t.meanwhile} marked={mine} />
      <span className="row">
        <Button small look="primary" onClick={keep}>
          {t.mine}
        </Button>
        <Button small onClick={take}>
          {t.theirs}
        </Button>
      </span>
    </div>
  );
}

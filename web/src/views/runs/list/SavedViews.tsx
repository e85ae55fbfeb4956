/** Menu of saved searches, and the dialogs to save and remove them. */
import { useState } from "react";
import { useWords } from "../../../i18n";
import { common } from "../../../i18n/common";
import { Button, Dialog, Field, Menu, useToasts } from "../../../ui";
import { findingWords } from "./findingWords";
import { forgetView, saveView, useSavedViews } from "./views";

export function SavedViews({ q, onChoose }: { q: string; onChoose: (q: string) => void }) {
  const t = useWords(findingWords);
  const both = useWords(common);
  const toasts = useToasts();
  const saved = useSavedViews();
  const [asking, setAsking] = useState<"save" | "forget" | null>(null);
  const [name, setName] = useState("");
  const given = [
    { id: "state:failed state:timed_out state:expired since:24h", name: t.failedToday },
    { id: "state:running state:waiting state:cancelling", name: t.goingOn },
    { id: "state:queued", name: t.waits },
  ];
  const entries = [
    ...saved.map((view) => ({ id: `q${view.q}\n${view.name}`, name: view.name })),
    ...given.map((view) => ({ ...view, id: `q${view.id}` })),
    { id: "save", name: t.save, disabled: !q },
    ...(saved.length ? [{ id: "forget", name: t.forget }] : []),
  ];
  const act = (id: string) => {
    if (id === "save" || id === "forget") return setAsking(id);
    onChoose(id.slice(1).split("\n")[0]!);
  };
  return (
    <>
      <Menu label={t.views} icon="star" className="button" entries={entries} onAction={act} />
      <Dialog title={t.saveTitle} open={asking === "save"} onClose={() => setAsking(null)}>
        <form
          className="stack"
          onSubmit={(event) => {
            event.preventDefault();
            if (!name.trim()) return;
            saveView({ name: name.trim(), q });
            toasts.say({ text: t.saved(name.trim()), tone: "good" });
            setName("");
            setAsking(null);
          }}
        >
          <code className="hostile">{q}</code>
          <Field name={t.name} hint={t.nameHint}>
            <input value={name} maxLength={80} autoFocus onChange={(event) => setName(event.target.value)} />
          </Field>
          <footer>
            <Button onClick={() => setAsking(null)}>{both.notNow}</Button>
            <Button type="submit" look="primary" disabled={!name.trim()}>
              {t.saveTitle}
            </Button>
          </footer>
        </form>
      </Dialog>
      <Dialog title={t.forgetTitle} open={asking === "forget"} onClose={() => setAsking(null)}>
        <ul className="runs-saved">
          {saved.map((view) => (
            <li key={view.name} className="row spread">
              <span className="hostile">
                {view.name} <code className="quiet">{view.q}</code>
              </span>
              <Button small icon="trash" label={both.remove(view.name)} onClick={() => forgetView(view.name)} />
            </li>
          ))}
        </ul>
        <footer>
          <Button onClick={() => setAsking(null)}>{both.close}</Button>
        </footer>
      </Dialog>
    </>
  );
}

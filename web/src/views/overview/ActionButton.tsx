/** Button that carries out what helps with an item, after a confirmation that shows the same as a command. */
import { useState } from "react";
import { useCommand, useMay } from "../../api/hooks";
import type { Action } from "../../api/schema";
import { useWords } from "../../i18n";
import { lazily } from "../../router";
import { Button, ConfirmDialog, useToasts } from "../../ui";
import type { Token } from "../runs/search";
import { isKnown, needsAdmin, send } from "./actions";
import { attentionWords } from "./attentionWords";

const BulkDialog = lazily(() => import("../runs/list/BulkDialog").then((file) => file.BulkDialog));

export function ActionButton({ action, name }: { action: Action; name: string }) {
  const t = useWords(attentionWords);
  const toasts = useToasts();
  const admin = useMay("admin");
  const [asking, setAsking] = useState(false);
  const act = useCommand(() => send(action), "runs", "schedules", "queues");
  const close = () => setAsking(false);
  if (!isKnown(action) || (needsAdmin(action) && !admin)) return null;
  const label = t[action.verb as "cancel"];
  const confirm = () =>
    act.mutate(undefined, {
      onSuccess: () => {
        close();
        toasts.say({ text: t.done(`${label} – ${name}`), tone: "good" });
      },
    });
  return (
    <>
      <Button small aria-label={`${label}: ${name}`} onClick={() => setAsking(true)}>{label}</Button>
      {asking &&
        (action.verb === "retry_many" ? (
          <BulkDialog action="retry" tokens={tokensOf(action.args.filter as Record<string, string>)} onClose={close} onDone={() => undefined} />
        ) : (
          <ConfirmDialog
            open
            title={`${label}: ${name}`}
            consequence={<><p>{t.sameAs}</p><code>{action.command}</code></>}
            action={label}
            danger={action.verb === "cancel"}
            busy={act.isPending}
            problem={act.error}
            onClose={close}
            onConfirm={confirm}
          />
        ))}
    </>
  );
}

/** Return the filter of a retry as tokens of a search. */
function tokensOf({ job, state, created_after }: Record<string, string>): Token[] {
  return [{ name: "job", value: job! }, { name: "state", value: state! }, { name: "since", value: created_after! }];
}

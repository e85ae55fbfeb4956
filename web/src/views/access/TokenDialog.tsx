/** Dialog for a new token. Its secret is shown once. */
import { useState } from "react";
import { api } from "../../api/client";
import { useCommand } from "../../api/hooks";
import type { IssuedToken, Role, TokensCreateBody } from "../../api/schema";
import { useWords } from "../../i18n";
import { Button, Command, Dialog, Field, FormDialog } from "../../ui";
import { accessWords, roleWords } from "./words";

const ROLES: Role[] = ["viewer", "operator", "admin", "worker", "enqueue"];

export function TokenDialog({ onClose }: { onClose: () => void }) {
  const t = useWords(accessWords);
  const does = useWords(roleWords);
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("viewer");
  const [expires, setExpires] = useState("90d");
  const [scope, setScope] = useState("");
  const create = useCommand((body: TokensCreateBody) => api.post<IssuedToken>("/tokens", body), "runs");
  if (create.data) return <Secret token={create.data} onClose={onClose} />;
  const submit = () => create.mutate({ name: name.trim(), role, expires: expires.trim() || "never", ...(scope.trim() && { scope: scope.trim() }) });
  return (
    <FormDialog title={t.addTitle} onClose={onClose} action={t.create} onSubmit={submit} ready={!!name.trim()} busy={create.isPending} problem={create.error}>
      <Field name={t.name} hint={t.nameHint}>
        <input value={name} autoFocus spellCheck={false} onChange={(event) => setName(event.target.value)} />
      </Field>
      <Field name={t.role} hint={does[role]}>
        <select value={role} onChange={(event) => setRole(event.target.value as Role)}>
          {ROLES.map((each) => <option key={each}>{each}</option>)}
        </select>
      </Field>
      <Field name={t.expires} hint={t.expiresHint}>
        <input value={expires} spellCheck={false} onChange={(event) => setExpires(event.target.value)} />
      </Field>
      <Field name={t.scope} hint={t.scopeHint}>
        <input value={scope} spellCheck={false} placeholder="tenant/42" onChange={(event) => setScope(event.target.value)} />
      </Field>
    </FormDialog>
  );
}

function Secret({ token, onClose }: { token: IssuedToken; onClose: () => void }) {
  const t = useWords(accessWords);
  return (
    <Dialog title={t.secretTitle(token.name)} open onClose={onClose} alert>
      <p>{t.secretAbout}</p>
      <Command text={token.secret} />
      <footer>
        <Button look="primary" onClick={onClose}>{t.done}</Button>
      </footer>
    </Dialog>
  );
}

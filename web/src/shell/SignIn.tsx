/** Who are you? A token is exchanged for a session's cookie, which no script can read. */
import { useEffect, useState, type FormEvent } from "react";
import { api } from "../api/client";
import { problemOf, type Problem } from "../api/problem";
import type { Identity } from "../api/schema";
import { useWords } from "../i18n";
import { Button, Command, Field, ProblemNotice } from "../ui";
import { shellWords } from "./words";

export function SignIn({ onDone }: { onDone: () => void }) {
  const t = useWords(shellWords);
  const [token, setToken] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    document.title = `${t.signIn} · rota`;
  }, [t]);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    try {
      await api.post<Identity>("/session", { token: token.trim() });
      onDone();
    } catch (error) {
      setProblem(problemOf(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <main className="signin" id="main">
      <form onSubmit={(event) => void submit(event)}>
        <h1>{t.signIn}</h1>
        <Field name={t.token} hint={t.signInAbout}>
          <input type="password" autoComplete="current-password" required autoFocus value={token} onChange={(event) => setToken(event.target.value)} />
        </Field>
        {problem && <ProblemNotice problem={problem} />}
        <Button type="submit" look="primary" busy={busy}>
          {t.signIn}
        </Button>
        <p className="quiet">{t.makeToken}</p>
        <Command text="rota token create NAME --role operator" />
      </form>
    </main>
  );
}

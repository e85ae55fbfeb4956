/** Sign-in form. It exchanges a token for a session cookie that scripts cannot read. */
import { useEffect, useState, type FormEvent } from "react";
import { api } from "../api/client";
import { problemOf, type Problem } from "../api/problem";
import type { Identity } from "../api/schema";
import { useWords } from "../i18n";
import { Button, Command, Field, ProblemNotice, useNow } from "../ui";
import { shellWords } from "./words";

export function SignIn({ onDone }: { onDone: () => void }) {
  const t = useWords(shellWords);
  useEffect(() => {
    document.title = `${t.signIn} · rota`;
  }, [t]);
  return (
    <main className="signin" id="main">
      <div className="signin-box">
        <h1>{t.signIn}</h1>
        <SignInForm onDone={onDone} />
        <p className="quiet">{t.makeToken}</p>
        <Command text="rota token create NAME --role operator" />
      </div>
    </main>
  );
}

export function SignInForm({ onDone }: { onDone: () => void }) {
  const t = useWords(shellWords);
  const [token, setToken] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);
  const [until, setUntil] = useState(0);
  const [busy, setBusy] = useState(false);
  const wait = Math.ceil((until - useNow()) / 1_000);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    try {
      await api.post<Identity>("/session", { token: token.trim() });
      onDone();
    } catch (error) {
      const found = problemOf(error);
      setProblem(found);
      if (found.retryAfter) setUntil(Date.now() + found.retryAfter * 1_000);
    } finally {
      setBusy(false);
    }
  };
  return (
    <form className="stack" onSubmit={(event) => void submit(event)}>
      <Field name={t.token} hint={t.signInAbout}>
        <input type="password" autoComplete="current-password" required autoFocus value={token} onChange={(event) => setToken(event.target.value)} />
      </Field>
      <SignInProblem problem={problem} wait={wait} />
      <div>
        <Button type="submit" look="primary" busy={busy} disabled={wait > 0}>
          {t.signIn}
        </Button>
      </div>
    </form>
  );
}

function SignInProblem({ problem, wait }: { problem: Problem | null; wait: number }) {
  const t = useWords(shellWords);
  if (!problem || (problem.code === "too-many-tries" && wait <= 0)) return null;
  if (problem.code !== "too-many-tries" && problem.code !== "not-signed-in") return <ProblemNotice problem={problem} />;
  return (
    <div className="notice tone-bad" role="alert">
      {problem.code === "too-many-tries" ? t.tooMany(wait) : t.wrongToken}
    </div>
  );
}

/** Root of the dashboard. */
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { signedIn, whenSignedOut } from "./api/client";
import { LiveProvider } from "./api/live";
import { Problem } from "./api/problem";
import { useWords } from "./i18n";
import { PreferencesProvider } from "./preferences";
import { Link, Routes, useLoadedAhead, usePlace } from "./router";
import { CrashGuard } from "./shell/Crash";
import { OVERLAYS, Shell } from "./shell/Shell";
import { SignIn, SignInForm } from "./shell/SignIn";
import { shellWords } from "./shell/words";
import { Dialog, EmptyState, PageHeader, ToastProvider } from "./ui";
import { views } from "./views";

const routes = views.flatMap((view) => view.routes);
const AHEAD = [...OVERLAYS, ...routes.map((route) => route.page)];

function newQueries(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 2_000,
        refetchOnWindowFocus: false, // the stream says what changed meanwhile
        retry: (count, error) => error instanceof Problem && (error.away || error.status === 503) && count < 2,
        retryDelay: 1_000,
      },
      mutations: { retry: false },
    },
  });
}

export function App() {
  const queries = useMemo(newQueries, []);
  return (
    <QueryClientProvider client={queries}>
      <PreferencesProvider>
        <SignInGate queries={queries} />
      </PreferencesProvider>
    </QueryClientProvider>
  );
}

/** Show the sign-in form instead of the page; after an expired session, above the page, so that typed input stays. */
function SignInGate({ queries }: { queries: QueryClient }) {
  const t = useWords(shellWords);
  const [signedOut, setSignedOut] = useState(false);
  const [entered, setEntered] = useState(false);
  useEffect(
    () =>
      whenSignedOut(() => {
        setEntered(queries.getQueryData(["whoami"]) !== undefined);
        setSignedOut(true);
      }),
    [queries],
  );
  const done = () => {
    setSignedOut(false);
    if (entered) signedIn();
    else queries.clear();
  };
  if (signedOut && !entered) return <SignIn onDone={done} />;
  return (
    <LiveProvider>
      <ToastProvider>
        <Shell>
          <Content />
        </Shell>
        <Dialog title={t.signInAgain} open={signedOut} onClose={() => undefined} alert>
          <p className="quiet">{t.sessionEnded}</p>
          <SignInForm onDone={done} />
        </Dialog>
      </ToastProvider>
    </LiveProvider>
  );
}

function Content() {
  const { path } = usePlace();
  useLoadedAhead(AHEAD);
  return (
    <CrashGuard place={path}>
      <Routes routes={routes} missing={<Missing />} />
    </CrashGuard>
  );
}

function Missing() {
  const t = useWords(shellWords);
  return (
    <>
      <PageHeader title={t.missing} />
      <EmptyState title={t.missingAbout}>
        <Link to="/">{t.toOverview}</Link>
      </EmptyState>
    </>
  );
}

/** Short messages about a finished action, with undo where possible. */
import { createContext, useCallback, useContext, useMemo, useState, type ReactNode } from "react";
import { problemOf } from "../../api/problem";
import { useWords } from "../../i18n";
import { common } from "../../i18n/common";
import { useSaid } from "../../i18n/said";
import type { Tone } from "../data/Badge";
import { Button } from "../forms/Button";

export interface Toast {
  text: string;
  tone?: Tone;
  /** Undo the action. */
  undo?: () => void;
}

interface Shown extends Toast {
  id: number;
}

interface Toaster {
  say: (toast: Toast | string) => void;
  /** Show the error that a command threw. */
  complain: (error: unknown) => void;
}

const ToastContext = createContext<Toaster | null>(null);
const STAYS = 6_000;
const STAYS_WITH_UNDO = 12_000;
let next = 0;

export function ToastProvider({ children }: { children: ReactNode }) {
  const [shown, setShown] = useState<Shown[]>([]);
  const t = useWords(common);
  const said = useSaid();
  const drop = useCallback((id: number) => setShown((before) => before.filter((toast) => toast.id !== id)), []);
  const toaster = useMemo<Toaster>(() => {
    const say = (toast: Toast | string) => {
      const made = { ...(typeof toast === "string" ? { text: toast } : toast), id: ++next };
      setShown((before) => [...before.slice(-3), made]);
      window.setTimeout(() => drop(made.id), made.undo ? STAYS_WITH_UNDO : STAYS);
    };
    const complain = (error: unknown) => {
      const problem = problemOf(error);
      say({ text: [problem.detail, problem.hint].filter((text) => text !== undefined).map(said).join(": "), tone: "bad" });
    };
    return { say, complain };
  }, [drop, said]);
  return (
    <ToastContext value={toaster}>
      {children}
      <div className="toasts" role="status" aria-live="polite">
        {shown.map((toast) => (
          <div key={toast.id} className={`toast tone-${toast.tone ?? "busy"}`}>
            <span className="grow">{toast.text}</span>
            {toast.undo && (
              <Button
                small
                onClick={() => {
                  toast.undo?.();
                  drop(toast.id);
                }}
              >
                {t.undo}
              </Button>
            )}
            <Button look="plain" small icon="close" label={t.dismiss} onClick={() => drop(toast.id)} />
          </div>
        ))}
      </div>
    </ToastContext>
  );
}

export function useToasts(): Toaster {
  return useContext(ToastContext)!;
}

/** User preferences (theme, language, time zone), stored in the browser. */
import { createContext, useCallback, useContext, useEffect, useMemo, useState, type ReactNode } from "react";

export type Theme = "system" | "light" | "dark";
export type Language = "en" | "zh";
export type Zone = "local" | "utc" | "schedule";

interface Preferences {
  theme: Theme;
  language: Language;
  zone: Zone;
}

interface Chosen extends Preferences {
  choose: (changes: Partial<Preferences>) => void;
}

const KEY = "rota.preferences";
const DEFAULTS: Preferences = { theme: "system", language: browserLanguage(), zone: "local" };

function browserLanguage(): Language {
  return navigator.languages.some((language) => /^en\b/i.test(language)) || !navigator.language.startsWith("zh") ? "en" : "zh";
}

function kept(): Preferences {
  try {
    const found = JSON.parse(localStorage.getItem(KEY) ?? "{}") as Partial<Preferences>;
    return { ...DEFAULTS, ...found };
  } catch {
    return DEFAULTS;
  }
}

function keep(preferences: Preferences): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(preferences));
  } catch {
    // The dashboard works without storage.
  }
}

function apply({ theme, language }: Preferences): void {
  const root = document.documentElement;
  if (theme === "system") delete root.dataset.theme;
  else root.dataset.theme = theme;
  root.lang = language === "zh" ? "zh-CN" : "en";
}

const PreferencesContext = createContext<Chosen | null>(null);

export function PreferencesProvider({ children }: { children: ReactNode }) {
  const [preferences, setPreferences] = useState(kept);
  useEffect(() => apply(preferences), [preferences]);
  const choose = useCallback((changes: Partial<Preferences>) => {
    setPreferences((before) => {
      const after = { ...before, ...changes };
      keep(after);
      return after;
    });
  }, []);
  const value = useMemo(() => ({ ...preferences, choose }), [preferences, choose]);
  return <PreferencesContext value={value}>{children}</PreferencesContext>;
}

export function usePreferences(): Chosen {
  return useContext(PreferencesContext)!;
}

apply(kept()); // before the first paint

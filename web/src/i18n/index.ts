/** Translations, stored next to the view that uses them. A missing key does not compile. */
import { usePreferences } from "../preferences";

type Word = string | ((...values: never[]) => string);
type Dictionary = Record<string, Word>;
type Translated<T extends Dictionary> = { [K in keyof T]: T[K] extends string ? string : T[K] };

export interface Words<T extends Dictionary> {
  en: T;
  zh: Translated<T>;
}

/** `words({ en: { title: "Runs", selected: (n: number) => `${n} selected` }, zh: { … } })` */
export function words<T extends Dictionary>(both: { en: T; zh: Translated<T> }): Words<T> {
  return both;
}

export function useWords<T extends Dictionary>(both: Words<T>): Translated<T> {
  const { language } = usePreferences();
  return language === "zh" ? both.zh : (both.en as Translated<T>);
}

/** Return the locale for `Intl`. */
export function useLocale(): string {
  const { language } = usePreferences();
  return language === "zh" ? "zh-CN" : navigator.languages.find((name) => /^en\b/i.test(name)) ?? "en-GB";
}

/** Sentences of the server in the language of the page. In English they are shown as they are. */
import { useEffect, useState } from "react";
import { usePreferences } from "../preferences";

type Translate = (text: string) => string;

const same: Translate = (text) => text;
let loaded: Translate | null = null;

/** Return a function that translates a sentence. The catalogue is loaded when somebody reads Chinese. */
export function useSaid(): Translate {
  const { language } = usePreferences();
  const [ready, setReady] = useState(loaded !== null);
  useEffect(() => {
    if (language !== "zh" || loaded) return;
    let here = true;
    void import("./sentences").then((file) => {
      loaded = file.translate;
      if (here) setReady(true);
    });
    return () => {
      here = false;
    };
  }, [language]);
  return language === "zh" && ready && loaded ? loaded : same;
}

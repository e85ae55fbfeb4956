/** Keys that work everywhere: Ctrl-K, and `g` with the letter of a view. */
import { useEffect, useRef } from "react";
import { navigate } from "../router";
import { views } from "../views";

const SOON = 1_500;

/** Open the palette with Ctrl-K, and go to a view with `g` and its letter. */
export function usePaletteKeys(onPalette: () => void): void {
  const latest = useRef(onPalette);
  latest.current = onPalette;
  useEffect(() => {
    let until = 0;
    const pressed = (event: globalThis.KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
        if (document.querySelector('[role="alertdialog"]')) return;
        event.preventDefault();
        return latest.current();
      }
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || document.querySelector('[role="dialog"], [role="alertdialog"], [role="menu"]')) return;
      if (Date.now() < until) {
        until = 0;
        const view = views.find((each) => each.key === event.key);
        if (!view) return;
        event.preventDefault(); // the letter means something else to the page
        navigate(view.routes[0]!.path);
      } else if (event.key === "g") until = Date.now() + SOON;
    };
    // Before the shortcuts of the page, which leave alone what was handled.
    document.addEventListener("keydown", pressed, { capture: true });
    return () => document.removeEventListener("keydown", pressed, { capture: true });
  }, []);
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || (["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName) && (target as HTMLInputElement).type !== "checkbox");
}

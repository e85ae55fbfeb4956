/** Saved searches for runs, kept in the browser. */
import { useSyncExternalStore } from "react";

export interface SavedView {
  name: string;
  q: string;
}

const KEY = "rota.run-views";
const CHANGED = "rota:views";
const MOST = 50;

let cached: { text: string | null; views: SavedView[] } = { text: null, views: [] };

function read(): SavedView[] {
  let text: string | null = null;
  try {
    text = localStorage.getItem(KEY);
  } catch {
    // Without storage there are none.
  }
  if (text === cached.text) return cached.views;
  let views: SavedView[] = [];
  try {
    const found: unknown = JSON.parse(text ?? "[]");
    if (Array.isArray(found)) views = found.filter((each): each is SavedView => typeof each?.name === "string" && typeof each?.q === "string");
  } catch {
    // What somebody else wrote there is not ours.
  }
  cached = { text, views };
  return views;
}

function listen(listener: () => void): () => void {
  const names = [CHANGED, "storage"];
  names.forEach((name) => window.addEventListener(name, listener));
  return () => names.forEach((name) => window.removeEventListener(name, listener));
}

function write(views: SavedView[]): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(views.slice(-MOST)));
  } catch {
    // The list works without storage.
  }
  window.dispatchEvent(new Event(CHANGED));
}

export const useSavedViews = (): SavedView[] => useSyncExternalStore(listen, read);

/** Save a search under a name, in place of another of that name. */
export const saveView = (view: SavedView): void => write([...read().filter((each) => each.name !== view.name), view]);

export const forgetView = (name: string): void => write(read().filter((each) => each.name !== name));

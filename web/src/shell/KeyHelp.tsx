/** List of keyboard shortcuts. */
import { useWords } from "../i18n";
import { usePreferences } from "../preferences";
import { Dialog } from "../ui";
import { views } from "../views";
import { shellWords } from "./words";

export function KeyHelp({ open, onClose }: { open: boolean; onClose: () => void }) {
  const t = useWords(shellWords);
  const { language } = usePreferences();
  const keys: [string[], string][] = [
    [["Ctrl", "K"], t.keyPalette],
    [["g", "…"], t.keyGo],
    [["/"], t.keySearch],
    [["j", "k"], t.keyMove],
    [["x"], t.keyChoose],
    [["Enter"], t.keyOpen],
    [["r"], t.keyRetry],
    [["c"], t.keyCancel],
    [["p"], t.keyPause],
    [["e"], t.keyEdit],
    [["?"], t.keyHelp],
  ];
  return (
    <Dialog title={t.keys} open={open} onClose={onClose}>
      <p className="quiet">{t.keysAbout}</p>
      <dl className="facts">
        {keys.map(([names, what]) => (
          <div key={what} style={{ display: "contents" }}>
            <dt className="row">
              {names.map((name) => (
                <kbd key={name}>{name}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <p className="keyhelp-go">
        {views.filter((view) => view.key).map((view) => (
          <span key={view.id}>
            <kbd>g</kbd> <kbd>{view.key}</kbd> {view.name[language].name}
          </span>
        ))}
      </p>
    </Dialog>
  );
}

/** List of keyboard shortcuts. */
import { useWords } from "../i18n";
import { Dialog } from "../ui";
import { shellWords } from "./words";

export function KeyHelp({ open, onClose }: { open: boolean; onClose: () => void }) {
  const t = useWords(shellWords);
  const keys: [string[], string][] = [
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
    </Dialog>
  );
}

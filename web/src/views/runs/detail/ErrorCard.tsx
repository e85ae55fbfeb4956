/** Error of a run, with the frames of the user's code first. */
import { useMemo } from "react";
import type { Run, RunError } from "../../../api/schema";
import { useWords } from "../../../i18n";
import { Link, withSearch } from "../../../router";
import { Card, CopyButton } from "../../../ui";
import { firstLine } from "../text";
import { format } from "../search";
import { runsWords } from "../words";

interface Frame {
  file: string;
  line: string;
  name: string;
  code: string;
}

const FRAME = /^ {2}File "(.*)", line (\d+)(?:, in (.*))?\n((?: {4}.*\n?)*)/gm;
const FOREIGN = /[\\/](?:site|dist)-packages[\\/]|[\\/]lib[\\/]python3|^<frozen|[\\/]rota[\\/]engine[\\/]/;

/** Return the user's frames, innermost first, because the error happened there. */
function ownFrames(traceback: string): Frame[] {
  const all = [...traceback.matchAll(FRAME)].map(([, file, line, name, code]) => ({ file: file!, line: line!, name: name ?? "", code: (code ?? "").split("\n")[0]!.trim() }));
  return all.filter((frame) => !FOREIGN.test(frame.file)).reverse();
}

export function ErrorCard({ run, error }: { run: Run; error: RunError }) {
  const t = useWords(runsWords);
  const frames = useMemo(() => ownFrames(error.traceback ?? ""), [error.traceback]);
  const same = withSearch("/runs", { q: format([{ name: "job", value: run.job }, { name: "error", value: `${error.type}: ${firstLine(error.message)}`.slice(0, 120) }]) });
  return (
    <Card title={t.error} actions={<Link to={same}>{t.otherErrors}</Link>}>
      <div className="stack">
        <p className="run-error">
          <strong>{error.type}</strong>
          {error.code && <code> {error.code}</code>}
          <span>{error.message}</span>
        </p>
        {frames.length > 0 && (
          <ol className="run-frames" aria-label={t.own}>
            {frames.slice(0, 8).map((frame, index) => (
              <li key={index}>
                <div>
                  <strong>{frame.name}</strong>{" "}
                  <span className="quiet" title={frame.file}>
                    {frame.file.split(/[\\/]/).slice(-2).join("/")}:{frame.line}
                  </span>
                </div>
                {frame.code && <code>{frame.code}</code>}
              </li>
            ))}
          </ol>
        )}
        {error.traceback && (
          <details>
            <summary>{t.allFrames}</summary>
            <div className="run-traceback">
              <pre tabIndex={0}>{error.traceback}</pre>
              <CopyButton text={error.traceback} />
            </div>
          </details>
        )}
      </div>
    </Card>
  );
}

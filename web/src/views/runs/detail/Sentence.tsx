/** Sentence of the server in the language of the page, with its timestamps in the shown time zone. */
import { useSaid } from "../../../i18n/said";
import { useAbsolute } from "../../../ui";

const INSTANT = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g;

export function Sentence({ text }: { text: string }) {
  const absolute = useAbsolute();
  const said = useSaid();
  return <>{said(text).replace(INSTANT, (found) => absolute(found))}</>;
}

/** In the place of a view that nobody has made yet. */
import { useWords, type Words } from "../i18n";
import { shellWords } from "../shell/words";
import { Card, EmptyState, PageHeader } from "../ui";

export function notYet(name: Words<{ name: string }>, command: string) {
  return function NotYet() {
    const t = useWords(shellWords);
    return (
      <>
        <PageHeader title={useWords(name).name} />
        <Card bare>
          <EmptyState title={t.notYet} command={command}>
            {t.notYetAbout}
          </EmptyState>
        </Card>
      </>
    );
  };
}

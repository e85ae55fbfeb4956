/** Notice above every page while the database is a copy that nobody has accepted: nothing runs, and this is why. */
import { api } from "../api/client";
import { useCommand, useGet, useIdentity, useMay } from "../api/hooks";
import type { DatabaseStanding } from "../api/schema";
import { useWords } from "../i18n";
import { Button, useToasts } from "../ui";
import { shellWords } from "./words";

const EVERY = 30_000;

export function CopyNotice() {
  const t = useWords(shellWords);
  const toasts = useToasts();
  const known = useIdentity() !== undefined;
  const admin = useMay("admin");
  const standing = useGet<DatabaseStanding>(null, "/database", {}, { enabled: known, every: EVERY });
  const accept = useCommand(() => api.post<DatabaseStanding>("/database/accept", {}));
  if (!standing.data?.held) return null;
  const onClick = () => accept.mutate(undefined, { onSuccess: () => void standing.refetch(), onError: toasts.complain });
  return (
    <div className="notice tone-warn" role="status">
      <strong>{t.copied}</strong>
      <span>{t.copiedAbout}</span>
      {admin && <Button onClick={onClick} busy={accept.isPending}>{t.acceptCopy}</Button>}
    </div>
  );
}

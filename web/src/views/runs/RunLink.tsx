/** A link to a run, named by the end of its id. */
import { Link } from "../../router";

export const ending = (id: string) => `…${id.slice(-12)}`;

export function RunLink({ id, children }: { id: string; children?: string }) {
  return (
    <Link to={`/runs/${id}`} title={id} className={children ? undefined : "mono"}>
      {children ?? ending(id)}
    </Link>
  );
}

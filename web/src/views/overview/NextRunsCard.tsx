/** Next runs of all schedules, with countdowns. */
import { part } from "../../api/client";
import type { NextRun } from "../../api/schema";
import { useWords } from "../../i18n";
import { useSaid } from "../../i18n/said";
import { Link } from "../../router";
import { Card, Countdown, DataTable, EmptyState, useAbsolute, type Column } from "../../ui";
import { overviewWords } from "./words";

const SHOWN = 8;
const keyOf = (fire: NextRun) => `${fire.schedule} ${fire.at}`;

export function NextRunsCard({ fires }: { fires: NextRun[] | undefined }) {
  const t = useWords(overviewWords);
  const said = useSaid();
  const columns: Column<NextRun>[] = [
    {
      id: "schedule",
      name: t.schedule,
      clip: true,
      cell: (fire) => (
        <div className="overview-fire">
          <Link to={`/schedules/${part(fire.schedule)}`} className="clip" title={fire.schedule}>
            {fire.schedule}
          </Link>
          <span className="quiet clip" title={said(fire.rule)}>
            {said(fire.rule)}
          </span>
        </div>
      ),
    },
    { id: "in", name: t.in, number: true, width: "6.5rem", cell: (fire) => <In fire={fire} /> },
  ];
  return (
    <Card bare title={t.fires} actions={<Link className="button plain small" to="/schedules">{t.allSchedules}</Link>}>
      <div className="overview-fires">
        <DataTable
          label={t.fires}
          columns={columns}
          rows={fires?.slice(0, SHOWN)}
          rowKey={keyOf}
          expected={5}
          empty={
            <EmptyState title={t.noFires} command="rota schedule create --help">
              {t.noFiresAbout}
            </EmptyState>
          }
        />
      </div>
    </Card>
  );
}

function In({ fire }: { fire: NextRun }) {
  const absolute = useAbsolute(fire.zone);
  return (
    <time dateTime={fire.at} title={absolute(fire.at)}>
      <Countdown to={fire.at} />
    </time>
  );
}

/** List of jobs with their state and statistics. */
import { part } from "../../api/client";
import { useMay, usePages } from "../../api/hooks";
import type { JobStats } from "../../api/schema";
import { useWords } from "../../i18n";
import { Link, useParameter } from "../../router";
import { Card, DataTable, EmptyState, PageHeader, Pagination, ProblemNotice, SearchBox, Time, type Column } from "../../ui";
import { JobMenu } from "./JobActions";
import { JobBadge } from "./JobBadge";
import { percent, rateTone, span, useStatsOf } from "./stats";
import type { Job } from "./types";
import { jobsWords, viewName } from "./words";
import "./jobs.css";

const PAGE = 100;

export function JobsPage() {
  const t = useWords(jobsWords);
  const name = useWords(viewName).name;
  const may = useMay("operator");
  const [q, setQ] = useParameter("q");
  const text = (q ?? "").trim() || null;
  const jobs = usePages<Job>("runs", "/jobs", { text, limit: PAGE }, { keep: true, rest: 1_000, every: 30_000 });
  const stats = useStatsOf({ text, limit: PAGE });
  const stat = (job: Job, of: (stats: JobStats) => React.ReactNode) => {
    const found = stats.of.get(job.name);
    return found ? of(found) : <span className="quiet">–</span>;
  };
  const more = () => {
    jobs.more();
    stats.more();
  };
  const columns: Column<Job>[] = [
    { id: "name", name: t.job, cell: (job) => <Name job={job} />, sortBy: (job) => job.name },
    { id: "state", name: t.state, cell: (job) => <JobBadge state={job.status.state} />, sortBy: (job) => job.status.state },
    { id: "live", name: t.live, cell: (job) => <Live job={job} />, number: true, priority: "low", sortBy: (job) => job.status.running + job.status.waiting },
    { id: "total", name: t.total, cell: (job) => stat(job, (stats) => stats.total.toLocaleString("en")), number: true, priority: "low" },
    { id: "rate", name: t.rate, cell: (job) => stat(job, (stats) => <Rate share={stats.success_rate} />), number: true },
    { id: "average", name: t.average, cell: (job) => stat(job, (stats) => span(stats.average_duration_ms)), number: true, priority: "lowest" },
    { id: "p95", name: t.p95, cell: (job) => stat(job, (stats) => span(stats.p95_duration_ms)), number: true, priority: "low" },
    { id: "last", name: t.last, cell: (job) => stat(job, (stats) => <Time at={stats.last_execution_at} />), number: true, priority: "low" },
    { id: "next", name: t.next, cell: (job) => <Time at={job.status.next_at} />, number: true, priority: "low", sortBy: (job) => job.status.next_at },
    ...(may ? [{ id: "actions", name: t.actions, cell: (job: Job) => <JobMenu job={job} />, number: true, width: "4rem", priority: "low" as const }] : []),
  ];
  return (
    <>
      <PageHeader title={name} about={t.about} />
      <div className="jobs-filter">
        <SearchBox label={t.filter} placeholder={t.filterHint} value={q ?? ""} onChange={(text) => setQ(text || null)} shortcut="/" />
      </div>
      {jobs.problem && <ProblemNotice problem={jobs.problem} onRetry={jobs.again} />}
      {!(jobs.problem && !jobs.items) && (
        <Card bare>
          <DataTable
            label={name}
            columns={columns}
            rows={jobs.items}
            rowKey={(job) => job.name}
            to={(job) => `/jobs/${part(job.name)}`}
            footer={jobs.items && <Pagination count={jobs.items.length} hasMore={!!jobs.hasMore} loading={jobs.loadingMore} onMore={more} />}
            empty={text ? <EmptyState title={t.noMatch} /> : <EmptyState title={t.emptyTitle} command={["rota dev", "rota job create ping --url https://example.com/health"]}>{t.emptyAbout}</EmptyState>}
          />
        </Card>
      )}
    </>
  );
}

function Name({ job }: { job: Job }) {
  return (
    <span className="jobs-name">
      <Link to={`/jobs/${part(job.name)}`} className="clip" title={job.name}>{job.name}</Link>
      {job.description && <span className="quiet clip" title={job.description}>{job.description.split("\n")[0]}</span>}
    </span>
  );
}

function Live({ job }: { job: Job }) {
  const t = useWords(jobsWords);
  const { running, waiting } = job.status;
  if (!running && !waiting) return <span className="quiet">–</span>;
  return <span className="jobs-live" title={t.liveAbout(running, waiting)}>{running}<span className="quiet"> + {waiting}</span></span>;
}

export function Rate({ share }: { share: number | null }) {
  const tone = rateTone(share);
  return <span className={tone ? `jobs-rate tone-${tone}` : undefined}>{percent(share)}</span>;
}

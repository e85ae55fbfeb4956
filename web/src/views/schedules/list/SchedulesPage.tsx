/** List of schedules, filtered by name, job and state. */
import { useEffect, useMemo, useRef, useState } from "react";
import type { Page, Parameters } from "../../../api/client";
import { useGet, useMay, usePages } from "../../../api/hooks";
import { useWords } from "../../../i18n";
import { Link, useParameter } from "../../../router";
import { Button, Card, ChoiceChips, DataTable, EmptyState, Icon, Menu, PageHeader, Pagination, ProblemNotice, SearchBox, useRested } from "../../../ui";
import { useActions } from "../actions/actions";
import { BulkDialog, type BulkAct } from "./BulkDialog";
import { useColumns } from "./columns";
import { schedulePath } from "../links";
import "../schedules.css";
import { STATES, type LookedFor, type Schedule } from "../types";
import { schedulesWords, viewName } from "../words";

const PAGE = 50;

export function SchedulesPage() {
  const t = useWords(schedulesWords);
  const title = useWords(viewName).name;
  const operator = useMay("operator");
  const admin = useMay("admin");
  const [text, setText] = useParameter("text");
  const [job, setJob] = useParameter("job");
  const [state, setState] = useParameter("state");
  const filter = useMemo<Parameters>(() => ({ text, job, state }), [text, job, state]);
  const narrowed = !!(text || job || state);
  const loaded = useRef(0); // reload many pages less often
  const schedules = usePages<Schedule>("schedules", "/schedules", { ...filter, recent: 30, limit: PAGE }, { keep: true, rest: loaded.current > 2 * PAGE ? 3_000 : 0 });
  loaded.current = schedules.items?.length ?? 0;
  const [chosen, setChosen] = useState<Set<string>>(new Set());
  const [bulk, setBulk] = useState<BulkAct | null>(null);
  useEffect(() => setChosen(new Set()), [filter]);
  const acting = useActions();
  const columns = useColumns(acting, operator);
  const what = chosen.size ? t.actChosen(chosen.size) : t.actAll;
  const clear = () => {
    setText(null);
    setJob(null);
    setState(null);
  };
  return (
    <>
      <PageHeader
        title={title}
        about={t.about}
        actions={
          admin && (
            <Link to="/schedules:new" className="button primary">
              <Icon name="plus" />
              {t.new}
            </Link>
          )
        }
      />
      <div className="schedules-filter">
        <NameFilter value={text ?? ""} onChange={(value) => setText(value || null)} />
        <JobFilter value={job} onChange={setJob} />
        <ChoiceChips<LookedFor>
          label={t.states}
          choices={STATES.map((id) => ({ id, name: t[id] }))}
          chosen={state ? [state as LookedFor] : []}
          onChange={(next) => setState(next.find((each) => each !== state) ?? null)}
        />
        {operator && (
          <span className="schedules-bulk">
            <Menu
              label={t.actOn(what)}
              text={`${what} ▾`}
              className="button"
              entries={(["pause", "resume", "enable", "disable"] as const).map((id) => ({ id, name: t[id], disabled: !schedules.items?.length }))}
              onAction={(id) => setBulk(id as BulkAct)}
            />
          </span>
        )}
      </div>
      {schedules.problem && <ProblemNotice problem={schedules.problem} onRetry={schedules.again} />}
      {!(schedules.problem && !schedules.items) && (
        <Card bare>
          <div className="schedules-table">
            <DataTable
              label={title}
              columns={columns}
              rows={schedules.items}
              rowKey={(row) => row.name}
              nameOf={(row) => row.name}
              to={(row) => schedulePath(row.name)}
              chosen={chosen}
              onChoose={operator ? setChosen : undefined}
              empty={
                narrowed ? (
                  <EmptyState title={t.noMatch}>
                    {t.noMatchAbout} <Button small onClick={clear}>{t.clear}</Button>
                  </EmptyState>
                ) : (
                  <EmptyState title={t.none} command={'rota schedule create nightly cleanup --cron "0 3 * * *"'}>
                    {t.noneAbout}
                  </EmptyState>
                )
              }
              footer={<Pagination count={schedules.items?.length ?? 0} hasMore={schedules.hasMore} loading={schedules.loadingMore} onMore={schedules.more} />}
            />
          </div>
        </Card>
      )}
      {acting.dialogs}
      {bulk && <BulkDialog action={bulk} names={chosen.size ? [...chosen] : null} filter={filter} close={() => setBulk(null)} done={() => setChosen(new Set())} />}
    </>
  );
}

function NameFilter({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const t = useWords(schedulesWords);
  const [typed, setTyped] = useState(value);
  const rested = useRested(typed, 200);
  useEffect(() => {
    if (rested === typed && rested !== value) onChange(rested);
    // eslint-disable-next-line
  }, [rested]);
  useEffect(() => setTyped(value), [value]);
  return <SearchBox label={t.search} placeholder={t.search} value={typed} onChange={setTyped} onEnter={onChange} shortcut="/" />;
}

function JobFilter({ value, onChange }: { value: string | null; onChange: (value: string | null) => void }) {
  const t = useWords(schedulesWords);
  const jobs = useGet<Page<{ name: string }>>(null, "/jobs", { limit: 500 });
  const names = jobs.data?.items.map((job) => job.name) ?? [];
  const known = value && !names.includes(value) ? [value, ...names] : names;
  return (
    <select className="input schedules-job" aria-label={t.job} value={value ?? ""} onChange={(event) => onChange(event.target.value || null)}>
      <option value="">{t.anyJob}</option>
      {known.map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </select>
  );
}

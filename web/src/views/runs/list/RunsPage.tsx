/** List of runs, newest first, with search, selection and bulk actions. */
import { useEffect, useMemo, useState } from "react";
import { useGet, useMay, usePages } from "../../../api/hooks";
import type { Page, Parameters } from "../../../api/client";
import type { Run, RunState } from "../../../api/schema";
import { useLocale, useWords } from "../../../i18n";
import { common } from "../../../i18n/common";
import { navigate, useParameter } from "../../../router";
import { Button, Card, ChoiceChips, DataTable, EmptyState, FilterChips, Menu, PageHeader, Pagination, ProblemNotice, SearchBox, STATES, StateBadge, useKeys, useRested } from "../../../ui";
import { BulkDialog, type BulkAction } from "./BulkDialog";
import { ColumnsButton } from "./ColumnsButton";
import { useColumns, useShownColumns } from "./columns";
import { useCompletion } from "./Completion";
import { EnqueueDialog } from "./EnqueueDialog";
import { SavedViews } from "./SavedViews";
import { format, toQuery, parse, statesOf, withStates, withToken, type Token } from "../search";
import { runsWords, viewName } from "../words";
import "./runs.css";

const HEX_ID = /^[0-9a-f]{8}-?[0-9a-f-]{4,28}$/i;

export function RunsPage() {
  const t = useWords(runsWords);
  const name = useWords(viewName).name;
  const may = useMay("operator");
  const [q, setQ] = useParameter("q");
  const tokens = useMemo(() => parse(q ?? ""), [q]);
  const { query, wrong } = useMemo(() => toQuery(tokens), [tokens]);
  const runs = usePages<Run>("runs", "/runs", { ...query, limit: 50 }, { enabled: !wrong, keep: true });
  const [chosen, setChosen] = useState<Set<string>>(new Set());
  const [bulk, setBulk] = useState<BulkAction | null>(null);
  const [enqueueing, setEnqueueing] = useState(false);
  const columns = useColumns();
  const [shown, setShown] = useShownColumns();
  const total = useTotal(query, runs.items?.length ?? 0, !!runs.hasMore, !wrong && !runs.old);
  const change = (next: Token[]) => setQ(format(next) || null);

  useEffect(() => setChosen(new Set()), [q]);
  const act = (action: "retry" | "cancel") => chosen.size && may && setBulk({ action, ids: [...chosen] });
  useKeys({ r: () => act("retry"), c: () => act("cancel") });

  return (
    <>
      <PageHeader
        title={name}
        actions={
          may && (
            <Button look="primary" icon="plus" onClick={() => setEnqueueing(true)}>
              {t.enqueue}
            </Button>
          )
        }
      />
      <div className="runs-filters">
        <div className="runs-search">
          <Search q={q ?? ""} onSearch={(text) => setQ(text || null)} />
          <JobMenu tokens={tokens} onChange={change} />
          <SavedViews q={q ?? ""} onChoose={(next) => setQ(next || null)} />
          <ColumnsButton columns={columns} shown={shown} onChange={setShown} />
        </div>
        {wrong && (
          <p className="runs-wrong" role="alert">
            {wrong.name === "state" ? t.wrongState(wrong.value) : t.wrongTime(wrong.value)}
          </p>
        )}
        <div className="runs-states">
          <ChoiceChips<RunState>
            label={t.states}
            choices={STATES.map((id) => ({ id, name: <StateBadge state={id} /> }))}
            chosen={statesOf(tokens)}
            onChange={(states) => change(withStates(tokens, states))}
          />
        </div>
        <Chips tokens={tokens} onChange={change} />
      </div>
      {runs.problem && <ProblemNotice problem={runs.problem} onRetry={runs.again} />}
      {(may || total) && (
        <ActionBar
          may={may}
          total={total}
          chosen={chosen.size}
          any={!!runs.items?.length}
          onChosen={act}
          onNone={() => setChosen(new Set())}
          onAll={(action) => setBulk({ action, tokens })}
        />
      )}
      {!(runs.problem && !runs.items) && (
        <Card bare>
          <DataTable
            label={name}
            columns={columns.filter(({ id }) => shown.includes(id))}
            rows={wrong ? [] : runs.items}
            rowKey={(run) => run.id}
            nameOf={(run) => `${run.job} ${run.id}`}
            to={(run) => `/runs/${run.id}`}
            chosen={chosen}
            onChoose={may ? setChosen : undefined}
            expected={12}
            old={runs.old}
            empty={<Empty filtered={tokens.length > 0} />}
            footer={runs.items && <Pagination count={runs.items.length} hasMore={!!runs.hasMore} loading={runs.loadingMore} onMore={runs.more} />}
          />
        </Card>
      )}
      {bulk && <BulkDialog {...bulk} onClose={() => setBulk(null)} onDone={() => setChosen(new Set())} />}
      {enqueueing && <EnqueueDialog job={tokens.find((token) => token.name === "job")?.value} onClose={() => setEnqueueing(false)} />}
    </>
  );
}

function Search({ q, onSearch }: { q: string; onSearch: (text: string) => void }) {
  const t = useWords(runsWords);
  const [text, setText] = useState(q);
  const rested = useRested(text, 500);
  const { completion, list } = useCompletion(text, (next) => setText(next));
  useEffect(() => setText(q), [q]);
  useEffect(() => {
    if (rested === text && rested.trim() !== q && !/[:"]$/.test(rested)) onSearch(rested.trim());
    // Search only for typed text: changes by the chips are in the address already.
    // eslint-disable-next-line
  }, [rested]);
  return (
    <div className="runs-box">
    <SearchBox
      completion={completion}
      label={t.search}
      placeholder={t.placeholder}
      value={text}
      onChange={setText}
      onEnter={() => (HEX_ID.test(text.trim()) ? navigate(`/runs/${text.trim()}`) : onSearch(text.trim()))}
      shortcut="/"
    />
    {list}
    </div>
  );
}

/** Chips for the tokens that no other control shows. */
function Chips({ tokens, onChange }: { tokens: Token[]; onChange: (tokens: Token[]) => void }) {
  const t = useWords(runsWords);
  const both = useWords(common);
  const shown = tokens.map((token, index) => ({ token, index })).filter(({ token }) => token.name !== "state" && token.name !== "job");
  return (
    <FilterChips
      chips={shown.map(({ token, index }) => ({ id: String(index), name: token.name ?? t.errorHas, value: token.value }))}
      removeLabel={both.remove}
      onRemove={(id) => onChange(tokens.filter((_, index) => String(index) !== id))}
    />
  );
}

function JobMenu({ tokens, onChange }: { tokens: Token[]; onChange: (tokens: Token[]) => void }) {
  const t = useWords(runsWords);
  const jobs = useGet<Page<{ name: string }>>(null, "/jobs", { limit: 500 });
  const chosen = tokens.find((token) => token.name === "job")?.value ?? "";
  if (!jobs.data?.items.length) return null;
  return (
    <Menu
      label={`${t.job}: ${chosen || t.anyJob}`}
      text={chosen || t.anyJob}
      className="button"
      icon="chevron"
      chosen={chosen || "*"}
      entries={[{ id: "*", name: t.anyJob }, ...jobs.data.items.map((job) => ({ id: job.name, name: job.name }))]}
      onAction={(id) => onChange(withToken(tokens, "job", id === "*" ? null : id))}
    />
  );
}

const PAGE = 50;
const MOST_COUNTED = 2_000;

/** Number of matching runs, where it is cheap: the whole list is there, or so many match that they are soon counted. */
function useTotal(query: Parameters, listed: number, hasMore: boolean, enabled: boolean): string | null {
  const t = useWords(runsWords);
  const locale = useLocale();
  const dense = hasMore && listed >= PAGE;
  const counted = useGet<{ count: number; exact: boolean }>("runs", "/runs:count", { ...query, most: MOST_COUNTED }, { enabled: enabled && dense, keep: true, rest: 5_000 });
  const count = hasMore ? (dense ? counted.data?.count : undefined) : listed;
  return count && enabled ? t.total(`${count.toLocaleString(locale)}${hasMore && !counted.data?.exact ? "+" : ""}`, count) : null;
}

interface ActionBarProps {
  may: boolean;
  total: string | null;
  chosen: number;
  any: boolean;
  onChosen: (action: "retry" | "cancel") => void;
  onNone: () => void;
  onAll: (action: "retry" | "cancel") => void;
}

function ActionBar({ may, total, chosen, any, onChosen, onNone, onAll }: ActionBarProps) {
  const t = useWords(runsWords);
  return (
    <div className="row spread runs-bar">
      {chosen ? (
        <span className="row">
          <strong>{t.chosen(chosen)}</strong>
          <Button small icon="retry" onClick={() => onChosen("retry")}>
            {t.retry}
          </Button>
          <Button small icon="cancel" look="danger" onClick={() => onChosen("cancel")}>
            {t.cancel}
          </Button>
          <Button small look="plain" onClick={onNone}>
            {t.unchoose}
          </Button>
        </span>
      ) : (
        <span className="quiet">{[t.about, total].filter(Boolean).join(" · ")}</span>
      )}
      {may && any && (
        <Menu
          label={t.allMatching}
          text={`${t.allMatching} …`}
          className="button small"
          entries={[
            { id: "retry", name: t.retryAll },
            { id: "cancel", name: t.cancelAll, danger: true },
          ]}
          onAction={(id) => onAll(id as "retry" | "cancel")}
        />
      )}
    </div>
  );
}

function Empty({ filtered }: { filtered: boolean }) {
  const t = useWords(runsWords);
  return filtered ? (
    <EmptyState title={t.noMatchTitle}>{t.noMatchAbout}</EmptyState>
  ) : (
    <EmptyState title={t.emptyTitle} command="rota run enqueue hello --wait">
      {t.emptyAbout}
    </EmptyState>
  );
}

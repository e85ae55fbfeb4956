/** Audit log, newest first. The address holds the filters. */
import { useEffect, useState } from "react";
import { part } from "../../api/client";
import { usePages } from "../../api/hooks";
import { writeJson } from "../../api/json";
import type { Event } from "../../api/schema";
import { useWords } from "../../i18n";
import { common } from "../../i18n/common";
import { Link, useParameter } from "../../router";
import { Card, DataTable, EmptyState, JsonTree, Menu, PageHeader, Pagination, ProblemNotice, SearchBox, StateBadge, Time, Button, type Column } from "../../ui";
import { auditWords, kindWords, typeWords, viewName } from "./words";
import "./audit.css";

const KINDS = ["run", "job", "schedule", "queue", "worker", "token", "quota", "notification"] as const;
type Kind = (typeof KINDS)[number];

export function AuditPage() {
  const t = useWords(auditWords);
  const name = useWords(viewName).name;
  const [kind] = useParameter("kind");
  const [subject] = useParameter("subject");
  const [actor] = useParameter("actor");
  const filtered = !!(kind || subject || actor);
  // Every write is announced on the topic `runs`, so it covers all kinds.
  const events = usePages<Event>("runs", "/audit", { kind, subject, actor, limit: 50 }, { keep: true, rest: 300 });
  const columns: Column<Event>[] = [
    { id: "at", name: t.when, cell: (event) => <Time at={event.at} />, width: "6rem" },
    { id: "type", name: t.what, cell: (event) => <What event={event} /> },
    { id: "subject", name: t.subject, cell: (event) => <Subject event={event} />, clip: true, width: "24%", priority: "low" },
    { id: "actor", name: t.who, cell: (event) => <Who actor={event.actor} />, priority: "low" },
    { id: "details", name: t.details, cell: (event) => <Details event={event} />, priority: "low", width: "34%" },
  ];
  return (
    <>
      <PageHeader title={name} about={t.about} />
      <Filters filtered={filtered} />
      {events.problem && <ProblemNotice problem={events.problem} onRetry={events.again} />}
      {!(events.problem && !events.items) && (
        <Card bare>
          <DataTable
            label={name}
            columns={columns}
            rows={events.items}
            rowKey={(event) => String(event.seq)}
            expected={12}
            empty={filtered ? <EmptyState title={t.noMatchTitle}>{t.noMatchAbout}</EmptyState> : <EmptyState title={t.emptyTitle} command="rota audit">{t.emptyAbout}</EmptyState>}
            footer={events.items && <Pagination count={events.items.length} hasMore={!!events.hasMore} loading={events.loadingMore} onMore={events.more} />}
          />
        </Card>
      )}
    </>
  );
}

function Filters({ filtered }: { filtered: boolean }) {
  const t = useWords(auditWords);
  const kinds = useWords(kindWords);
  const [kind, setKind] = useParameter("kind");
  const [, setSubject] = useParameter("subject");
  const [, setActor] = useParameter("actor");
  const shown = (KINDS as readonly string[]).includes(kind ?? "") ? kinds[kind as Kind] : (kind ?? t.anyKind);
  return (
    <div className="audit-filters">
      <Menu
        label={`${t.kind}: ${shown}`}
        text={shown}
        icon="chevron"
        className="button"
        chosen={kind ?? "*"}
        entries={[{ id: "*", name: t.anyKind }, ...KINDS.map((id) => ({ id, name: kinds[id] }))]}
        onAction={(id) => setKind(id === "*" ? null : id)}
      />
      <Typed parameter="subject" label={t.subject} placeholder={t.subjectHint} shortcut />
      <Typed parameter="actor" label={t.actor} placeholder={t.actorHint} />
      {filtered && (
        <Button
          look="plain"
          icon="close"
          onClick={() => {
            setKind(null);
            setSubject(null);
            setActor(null);
          }}
        >
          {t.clear}
        </Button>
      )}
    </div>
  );
}

function Typed({ parameter, label, placeholder, shortcut }: { parameter: string; label: string; placeholder: string; shortcut?: boolean }) {
  const [value, setValue] = useParameter(parameter);
  const [text, setText] = useState(value ?? "");
  useEffect(() => setText(value ?? ""), [value]);
  return <SearchBox label={label} placeholder={placeholder} value={text} onChange={(next) => { setText(next); if (!next) setValue(null); }} onEnter={() => setValue(text.trim() || null)} shortcut={shortcut ? "/" : undefined} />;
}

function What({ event }: { event: Event }) {
  const types = useWords(typeWords) as Record<string, string>;
  return (
    <span className="audit-what">
      {Object.hasOwn(types, event.type) ? types[event.type] : event.type.replaceAll("_", " ")}
      {event.to && event.to !== event.type && <StateBadge state={event.to} />}
      <span className="audit-small clip"><Subject event={event} /></span>
      {event.actor !== null && <span className="audit-small quiet clip">{event.actor}</span>}
    </span>
  );
}

const PLACES: Partial<Record<string, string>> = { run: "/runs/", job: "/jobs/", schedule: "/schedules/", queue: "/queues/", worker: "/workers/" };

function Subject({ event }: { event: Event }) {
  const kinds = useWords(kindWords) as Record<string, string>;
  const place = PLACES[event.kind];
  const shown = event.kind === "run" ? `…${event.subject.slice(-6)}` : event.subject;
  return (
    <>
      <span className="quiet">{kinds[event.kind] ?? event.kind} </span>
      {place ? <Link to={place + part(event.subject)} title={event.subject}>{shown}</Link> : <span title={event.subject}>{shown}</span>}
    </>
  );
}

function Who({ actor }: { actor: string | null }) {
  const t = useWords(auditWords);
  const [, setActor] = useParameter("actor");
  if (actor === null) return <span className="quiet">{t.nobody}</span>;
  return (
    <button type="button" className="audit-who clip" title={t.only(actor)} onClick={() => setActor(actor)}>
      {actor}
    </button>
  );
}

/** Details in one line; expanded on click. */
function Details({ event }: { event: Event }) {
  const t = useWords(auditWords);
  const both = useWords(common);
  const [open, setOpen] = useState(false);
  const told = Object.entries(event.details).filter(([, value]) => value !== null && value !== undefined);
  if (!told.length) return <span className="quiet">–</span>;
  const line = told.map(([name, value]) => `${name}: ${typeof value === "string" ? value : writeJson(value)}`).join(", ");
  return (
    <div className="audit-details">
      <button type="button" aria-expanded={open} title={open ? both.collapse : both.expand} onClick={() => setOpen(!open)}>
        <span aria-hidden="true">{open ? "▾" : "▸"}</span>
        <span className="clip">{open ? t.details : line.slice(0, 300)}</span>
      </button>
      {open && <JsonTree value={event.details} label={t.details} />}
    </div>
  );
}

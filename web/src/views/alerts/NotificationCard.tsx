/** Notifications: which events are sent where, switched on and off, and tested. */
import { useState } from "react";
import { api, part, type Page } from "../../api/client";
import { useCommand, useGet, useMay } from "../../api/hooks";
import type { NotificationView, NotificationsUpdateBody, Sent } from "../../api/schema";
import { useWords } from "../../i18n";
import { Badge, Button, Card, ConfirmDialog, DataTable, EmptyState, ProblemNotice, useToasts, type Column } from "../../ui";
import { NotificationDialog } from "./NotificationDialog";
import { alertsWords, eventWords } from "./words";

export function NotificationCard() {
  const t = useWords(alertsWords);
  const may = useMay("admin");
  const [adding, setAdding] = useState(false);
  const found = useGet<Page<NotificationView>>("runs", "/notifications", { limit: 500 }, { rest: 2_000 });
  const columns: Column<NotificationView>[] = [
    { id: "name", name: t.name, cell: (one) => <span className="clip" title={one.owner}>{one.name}</span>, sortBy: (one) => one.name },
    { id: "state", name: t.state, cell: (one) => <Switch notification={one} />, sortBy: (one) => String(one.enabled) },
    { id: "on", name: t.events, cell: (one) => <Events on={one.on} /> },
    { id: "of", name: t.covers, cell: (one) => <Covers notification={one} />, priority: "low" },
    { id: "to", name: t.to, cell: (one) => <span className="clip mono" title={one.to}>{one.to}</span>, clip: true, priority: "low", width: "26%" },
    ...(may ? [{ id: "actions", name: t.actions, cell: (one: NotificationView) => <Actions notification={one} />, number: true, priority: "low" as const }] : []),
  ];
  return (
    <Card bare title={t.notifications} actions={may && <Button small icon="plus" onClick={() => setAdding(true)}>{t.addNotification}</Button>}>
      {found.error && !found.data ? (
        <ProblemNotice problem={found.error} onRetry={() => void found.refetch()} />
      ) : (
        <DataTable
          label={t.notifications}
          columns={columns}
          rows={found.data?.items}
          rowKey={(one) => one.name}
          expected={2}
          empty={<EmptyState title={t.noNotifications} command="rota notification create ops --on failure --on breached --to https://example.com/hook">{t.noNotificationsAbout}</EmptyState>}
        />
      )}
      {adding && <NotificationDialog onClose={() => setAdding(false)} />}
    </Card>
  );
}

function Switch({ notification }: { notification: NotificationView }) {
  const t = useWords(alertsWords);
  return notification.enabled ? <Badge tone="good" shape="succeeded">{t.on}</Badge> : <Badge tone="warn" shape="waiting">{t.off}</Badge>;
}

function Events({ on }: { on: string[] }) {
  const names = useWords(eventWords) as Record<string, string>;
  return <>{on.map((event) => names[event] ?? event).join(", ")}</>;
}

function Covers({ notification }: { notification: NotificationView }) {
  const t = useWords(alertsWords);
  const names = [...notification.jobs, ...notification.schedules];
  if (!names.length) return <span className="quiet">{t.everything}</span>;
  return <span title={names.join(", ")}>{names.slice(0, 3).join(", ")}{names.length > 3 && ` +${names.length - 3}`}</span>;
}

function Actions({ notification }: { notification: NotificationView }) {
  const t = useWords(alertsWords);
  const toasts = useToasts();
  const [asking, setAsking] = useState(false);
  const place = `/notifications/${part(notification.name)}`;
  const test = useCommand(() => api.post<Sent>(`${place}/test`));
  const change = useCommand((body: NotificationsUpdateBody) => api.patch<NotificationView>(place, body), "runs");
  const drop = useCommand(() => api.delete(place), "runs");
  const say = (text: string) => ({ onSuccess: () => toasts.say({ text, tone: "good" as const }), onError: toasts.complain });
  return (
    <span className="row">
      <Button small busy={test.isPending} aria-label={`${t.test} ${notification.name}`} onClick={() => test.mutate(undefined, say(t.tested(notification.name)))}>{t.test}</Button>
      <Button
        small
        icon={notification.enabled ? "pause" : "play"}
        busy={change.isPending}
        label={`${notification.enabled ? t.disable : t.enable} ${notification.name}`}
        onClick={() => change.mutate({ enabled: !notification.enabled }, say(notification.enabled ? t.disabled(notification.name) : t.enabled(notification.name)))}
      />
      <Button small look="danger" icon="trash" label={`${t.delete} ${notification.name}`} onClick={() => setAsking(true)} />
      {asking && (
        <ConfirmDialog
          title={t.dropNotification(notification.name)}
          open
          danger
          onClose={() => setAsking(false)}
          consequence={t.dropNotificationAbout}
          action={t.delete}
          busy={drop.isPending}
          problem={drop.error}
          onConfirm={() => drop.mutate(undefined, { onSuccess: () => setAsking(false) })}
        />
      )}
    </span>
  );
}

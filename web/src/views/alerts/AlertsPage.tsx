/** What is expected of jobs and schedules, and who is told of what. */
import { useWords } from "../../i18n";
import { Link, withSearch } from "../../router";
import { PageHeader } from "../../ui";
import { ExpectationCard } from "./ExpectationCard";
import { NotificationCard } from "./NotificationCard";
import { alertsWords, viewName } from "./words";
import "./alerts.css";

export function AlertsPage() {
  const t = useWords(alertsWords);
  return (
    <>
      <PageHeader
        title={useWords(viewName).name}
        about={t.about}
        actions={<Link className="button" to={withSearch("/audit", { kind: "notification" })}>{t.history}</Link>}
      />
      <ExpectationCard />
      <NotificationCard />
    </>
  );
}

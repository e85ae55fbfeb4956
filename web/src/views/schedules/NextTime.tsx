/** When a schedule runs next, or why it does not. */
import { useLocale, useWords } from "../../i18n";
import { common } from "../../i18n/common";
import { Time, relative, useAbsolute, useNow, useZone } from "../../ui";
import type { Schedule } from "./types";
import { schedulesWords } from "./words";

/** Format `17 Nov, 09:00 CET` in the zone that is selected, as every time on the page. */
function useInZone(own: string): (at: string) => string {
  const locale = useLocale();
  const zone = useZone(own);
  const format = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone: zone, timeZoneName: "short" });
  return (at) => format.format(new Date(at));
}

export function NextTime({ schedule }: { schedule: Schedule }) {
  const t = useWords(schedulesWords);
  const both = useWords(common);
  const locale = useLocale();
  const now = useNow();
  const inZone = useInZone(schedule.timezone);
  const absolute = useAbsolute(schedule.timezone);
  if (schedule.resume_at && schedule.paused_at) {
    return (
      <div className="schedules-two">
        <span className="quiet">
          {t.resumes} <Time at={schedule.resume_at} zone={schedule.timezone} />
        </span>
        <span className="quiet">{inZone(schedule.resume_at)}</span>
      </div>
    );
  }
  if (schedule.state !== "active" || !schedule.next_plan) {
    const why = schedule.state !== "active" ? "–" : schedule.awaits ? t.afterRun : schedule.definition.following !== undefined ? t.afterEnd : t.noNext;
    return <span className="quiet">{why}</span>;
  }
  return (
    <div className="schedules-two">
      <time dateTime={schedule.next_plan} title={absolute(schedule.next_plan)}>
        {relative(Date.parse(schedule.next_plan), now, locale, both.now)}
      </time>
      <span className="quiet schedules-when">{inZone(schedule.next_plan)}</span>
    </div>
  );
}

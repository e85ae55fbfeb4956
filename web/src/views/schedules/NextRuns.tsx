/** Table of the next plan times, with marks for clock changes. */
import type { Fire } from "../../api/schema";
import { useLocale, useWords } from "../../i18n";
import { common } from "../../i18n/common";
import { Badge, relative, useAbsolute, useNow } from "../../ui";
import { detailWords } from "./detail/words";

type Mark = "gap" | "fold-first" | "fold-second" | "transition";

interface Props {
  fires: Fire[] | undefined;
  /** Zone of the times; by default that of the browser. */
  zone: string | undefined;
  expected?: number;
  scrolls?: boolean;
}

export function NextRuns({ fires, zone, expected = 10, scrolls = false }: Props) {
  const t = useWords(detailWords);
  const both = useWords(common);
  const locale = useLocale();
  const now = useNow();
  const absolute = useAbsolute(zone);
  const seconds = fires?.some((fire) => !/:00(\.0+)?Z$/.test(fire.plan_time));
  const soon = fires?.every((fire) => Date.parse(fire.plan_time) - now < 300 * 86_400_000);
  const format = new Intl.DateTimeFormat(locale, {
    weekday: "short", day: "2-digit", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone: zone, timeZoneName: "short",
    ...(soon ? {} : { year: "numeric" }), ...(seconds ? { second: "2-digit" } : {}),
  });
  return (
    <div className="table-wrap" tabIndex={scrolls ? 0 : undefined}>
      <table className="table schedules-fires" aria-label={t.fires}>
        <thead className="unseen">
          <tr>
            <th scope="col">{t.fireAt}</th>
            <th scope="col">{t.fireIn}</th>
          </tr>
        </thead>
        <tbody>
          {(fires ?? Array.from({ length: expected }, () => null)).map((fire, index) =>
            fire ? (
              <tr key={fire.plan_time}>
                <th scope="row">
                  <time dateTime={fire.plan_time} title={absolute(fire.plan_time)}>
                    {format.format(new Date(fire.plan_time))}
                  </time>
                  {fire.marks.map((mark) => (
                    <span key={mark} title={t[`mark_${mark as Mark}_about`]}>
                      {" "}
                      <Badge tone="warn" shape="expired">
                        {t[`mark_${mark as Mark}`]}
                      </Badge>
                    </span>
                  ))}
                </th>
                <td className="number quiet">{relative(Date.parse(fire.plan_time), now, locale, both.now)}</td>
              </tr>
            ) : (
              <tr key={index} aria-hidden="true">
                <td>
                  <span className="skeleton" style={{ width: "70%" }} />
                </td>
                <td />
              </tr>
            ),
          )}
        </tbody>
      </table>
    </div>
  );
}

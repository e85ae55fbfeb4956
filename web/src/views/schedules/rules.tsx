/** Rule of a schedule, in the shown language and as written. */
import { useLocale } from "../../i18n";
import { usePreferences } from "../../preferences";
import type { Document, Schedule } from "./types";

/** Return the expression as typed: `0 9 * * MON-FRI`, `every 30m`. */
export function expressionOf(document: Document): string {
  const { cron, every, after, following, once, either } = document;
  if (typeof cron === "string") return cron;
  if (cron !== null && typeof cron === "object") return String((cron as { expression?: unknown }).expression ?? "");
  if (every !== undefined) return `every ${String(every)}`;
  if (after !== undefined) return `after ${String(after)}`;
  if (following !== undefined) return `following ${String(following)}`;
  if (once !== undefined) return `once`;
  return Array.isArray(either) ? either.map((part) => expressionOf(part as Document)).join(" | ") : "";
}

const DAYS = ["周日", "周一", "周二", "周三", "周四", "周五", "周六"];
const UNITS: Record<string, string> = { ms: "毫秒", s: "秒", m: "分钟", h: "小时", d: "天" };
const NAMES: Record<string, number> = { SUN: 0, MON: 1, TUE: 2, WED: 3, THU: 4, FRI: 5, SAT: 6 };

/** Translate common expressions to Chinese; return null for others. */
function chineseCron(expression: string): string | null {
  const nick: Record<string, string> = { "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *" };
  const fields = (nick[expression] ?? expression).trim().split(/\s+/);
  if (fields.length !== 5) return null;
  const [minute, hour, day, month, weekday] = fields as [string, string, string, string, string];
  if (month !== "*") return null;
  const days = chineseDays(day, weekday);
  if (days === null) return null;
  const step = /^\*\/(\d+)$/.exec(minute);
  if (hour === "*") {
    const often = minute === "*" ? "每分钟" : step ? `每 ${step[1]} 分钟` : minute === "0" ? "每小时" : /^\d+$/.test(minute) ? `每小时的第 ${minute} 分钟` : null;
    return often && (days === "每天" ? often : `${days}，${often}`);
  }
  if (!/^\d+$/.test(minute) || !/^\d+(,\d+)*$/.test(hour)) return null;
  return `${days} ${hour.split(",").map((each) => `${each.padStart(2, "0")}:${minute.padStart(2, "0")}`).join("、")}`;
}

function chineseDays(day: string, weekday: string): string | null {
  const free = (field: string) => field === "*" || field === "?";
  if (free(day) && free(weekday)) return "每天";
  if (free(weekday)) return day === "L" ? "每月最后一天" : /^\d+(,\d+)*$/.test(day) ? `每月 ${day.replaceAll(",", "、")} 日` : null;
  if (!free(day)) return null;
  const named = weekday.toUpperCase();
  if (named === "MON-FRI" || named === "1-5") return "工作日";
  const some = named.split(",").map((each) => NAMES[each] ?? (/^[0-7]$/.test(each) ? Number(each) % 7 : -1));
  return some.every((each) => each >= 0) ? `每${some.map((each) => DAYS[each]).join("、")}` : null;
}

function chineseSpan(text: string): string {
  return text.replace(/(\d+)(ms|[smhd])/g, (_, count: string, unit: string) => ` ${count} ${UNITS[unit]}`).trim();
}

function chinese(document: Document, zone: string, instant: (at: string) => string): string | null {
  const { cron, every, after, following, once, either } = document;
  if (cron !== undefined) {
    const said = chineseCron(expressionOf(document));
    return said && `${said}（${zone}）`;
  }
  if (every !== undefined) return `每隔 ${chineseSpan(String(every))}`;
  if (after !== undefined) return `上次运行结束 ${chineseSpan(String(after))}后`;
  if (following !== undefined) return `${String(following)} 每次${{ success: "成功", failure: "失败", end: "结束" }[String(document.on ?? "success")] ?? "结束"}后`;
  if (once !== undefined) return `仅一次：${instant(String(once))}`;
  if (!Array.isArray(either)) return null;
  const parts = either.map((part) => chinese(part as Document, zone, instant));
  return parts.every(Boolean) ? parts.join("，或") : null;
}

/** Return the rule in words. The server writes English; the Chinese text omits bounds and windows. */
export function useRule(): (schedule: Pick<Schedule, "rule" | "definition" | "timezone">) => string {
  const { language } = usePreferences();
  const locale = useLocale();
  return ({ rule, definition, timezone }) => {
    if (language !== "zh") return rule;
    const instant = (at: string) => new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short", timeZone: timezone }).format(new Date(at));
    return chinese(definition, timezone, instant) ?? rule;
  };
}

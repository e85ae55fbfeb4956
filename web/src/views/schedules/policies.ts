/** Policies of a schedule as sentences and as badges. */
import { useWords, words } from "../../i18n";
import type { Document } from "./types";

type Mode = { mode: string } & Record<string, unknown>;

/** Return the policy as an object: it is a mode or an object with options. */
export function modeOf(value: unknown, usual: string): Mode {
  if (value !== null && typeof value === "object" && "mode" in value) return value as Mode;
  return { mode: typeof value === "string" ? value : usual };
}

export const policyWords = words({
  en: {
    overlap: "Overlap",
    catch_up: "Late",
    failure: "Failure",
    limit: "Limit",
    more: "Other",
    overlap_skip: "While a run is active, plan times are skipped.",
    overlap_allow: "Runs may overlap, within the limits.",
    overlap_cancel_previous: "A new run stops the one before it.",
    overlap_parallel: "Runs may overlap, regardless of the job's limit.",
    overlap_queue_one: "One run waits while another is active. Further plan times are skipped.",
    overlap_queue_all: "Runs wait for each other.",
    late_none: (grace: string) => `A plan time that is more than ${grace} late is missed.`,
    late_latest: (window: string) => `If several are due, only the newest one runs. It covers the others of the last ${window}.`,
    late_all: (window: string, keep: string) => `If several are due, all run, oldest first: at most the newest ${keep} of the last ${window}.`,
    failure_run_new: "After a failure, the next plan time runs as usual.",
    failure_skip: "After a failure, one plan time is skipped.",
    failure_retry: "After a failure, the next plan time is another attempt of the same work.",
    failure_backoff: "After failures, plan times are skipped for increasing periods.",
    failure_half_open: (threshold: string, cooldown: string) => `After ${threshold} failures in a row, one probe runs per ${cooldown}. Other plan times are skipped.`,
    failure_pause: "A failure pauses the schedule.",
    atOnce: (max: string, full: string) => `At most ${max} at once; another run ${full}.`,
    full_queue: "waits",
    full_skip: "is skipped",
    full_reject: "is refused",
    full_cancel_oldest: "stops the oldest",
    rate: (rate: string) => `At most ${rate} start.`,
    delay: (span: string) => `Runs start ${span} after their plan time.`,
    jitter: (span: string) => `Runs start up to ${span} later, by a fixed amount per plan time.`,
    maxRuns: (count: string) => `It ends after ${count} plan times.`,
    badge_overlap: (mode: string) => `overlap ${mode}`,
    badge_late: (mode: string) => `catch-up ${mode}`,
    badge_failure: (mode: string) => `on failure ${mode}`,
    badge_limit: (max: string) => `max ${max}`,
    badge_scopes: (count: string) => `${count} scopes`,
    badge_provider: (name: string) => `scopes of ${name}`,
    badge_windows: "windows",
    badge_exclude: "days off",
    badge_jitter: (span: string) => `jitter ${span}`,
    badge_delay: (span: string) => `delay ${span}`,
    badge_expect: "expectations",
    mode_skip: "skip",
    mode_allow: "allow",
    mode_cancel_previous: "cancel previous",
    mode_parallel: "parallel",
    mode_queue_one: "queue one",
    mode_queue_all: "queue all",
    mode_latest: "latest",
    mode_all: "all",
    mode_none: "none",
    mode_run_new: "run as usual",
    mode_retry: "retry",
    mode_backoff: "back off",
    mode_half_open: "half open",
    mode_pause: "pause",
  },
  zh: {
    overlap: "重叠",
    catch_up: "迟到",
    failure: "失败",
    limit: "限制",
    more: "其他",
    overlap_skip: "前一次还在运行时，跳过新的计划时间。",
    overlap_allow: "允许重叠，只受限制约束。",
    overlap_cancel_previous: "新的运行会停止前一次。",
    overlap_parallel: "允许重叠，不受任务自身限制约束。",
    overlap_queue_one: "运行期间最多一个等待，其余计划时间跳过。",
    overlap_queue_all: "运行依次排队等待。",
    late_none: (grace: string) => `迟到超过 ${grace} 的计划时间算作错过。`,
    late_latest: (window: string) => `有多个到期时只运行最新的一个，并覆盖最近 ${window} 内的其他各次。`,
    late_all: (window: string, keep: string) => `有多个到期时从最早的开始逐个运行：最近 ${window} 内最新的 ${keep} 个。`,
    failure_run_new: "失败后，下一个计划时间照常运行。",
    failure_skip: "失败后跳过一个计划时间。",
    failure_retry: "失败后，下一个计划时间作为同一工作的再次尝试。",
    failure_backoff: "失败后跳过计划时间，时长逐次增加。",
    failure_half_open: (threshold: string, cooldown: string) => `连续失败 ${threshold} 次后，每 ${cooldown} 试探一次，其余跳过。`,
    failure_pause: "失败会暂停计划。",
    atOnce: (max: string, full: string) => `同时最多 ${max} 个；再多的${full}。`,
    full_queue: "排队等待",
    full_skip: "被跳过",
    full_reject: "被拒绝",
    full_cancel_oldest: "会停止最早的一个",
    rate: (rate: string) => `最多开始 ${rate}。`,
    delay: (span: string) => `在计划时间之后 ${span} 开始。`,
    jitter: (span: string) => `最多再晚 ${span}，每个计划时间固定。`,
    maxRuns: (count: string) => `${count} 个计划时间后结束。`,
    badge_overlap: (mode: string) => `重叠 ${mode}`,
    badge_late: (mode: string) => `补跑 ${mode}`,
    badge_failure: (mode: string) => `失败时 ${mode}`,
    badge_limit: (max: string) => `最多 ${max}`,
    badge_scopes: (count: string) => `${count} 个范围`,
    badge_provider: (name: string) => `范围来自 ${name}`,
    badge_windows: "时间窗",
    badge_exclude: "休息日",
    badge_jitter: (span: string) => `抖动 ${span}`,
    badge_delay: (span: string) => `延迟 ${span}`,
    badge_expect: "期望",
    mode_skip: "跳过",
    mode_allow: "允许",
    mode_cancel_previous: "取消前一次",
    mode_parallel: "并行",
    mode_queue_one: "排队一个",
    mode_queue_all: "全部排队",
    mode_latest: "只补最新",
    mode_all: "全部补上",
    mode_none: "不补",
    mode_run_new: "照常运行",
    mode_retry: "重试",
    mode_backoff: "退避",
    mode_half_open: "半开试探",
    mode_pause: "暂停",
  },
});

type Said = ReturnType<typeof useWords<(typeof policyWords)["en"]>>;

const usualOverlap = (document: Document) =>
  modeOf(document.catch_up, "latest").mode === "all" || document.following !== undefined ? "queue_all" : "skip";

/** Return the short name of a mode. */
export const modeWord = (mode: string, t: Said): string => {
  const found = (t as Record<string, unknown>)[`mode_${mode}`];
  return typeof found === "string" ? found : mode;
};

const word = (t: Said, key: string): string => {
  const found = (t as Record<string, unknown>)[key];
  return typeof found === "string" ? found : key;
};

/** Return each policy's name with a sentence. */
export function sentences(document: Document, t: Said): [name: string, sentence: string][] {
  const overlap = modeOf(document.overlap, usualOverlap(document));
  const late = modeOf(document.catch_up, "latest");
  const failure = modeOf(document.failure, "run_new");
  const text = (value: unknown, usual: string) => String(value ?? usual);
  const said: [string, string][] = [];
  if (document.following === undefined && document.after === undefined) {
    const lateness =
      late.mode === "none"
        ? t.late_none(text(late.grace, "60s"))
        : late.mode === "all"
          ? t.late_all(text(late.window, "24h"), text(late.keep, "1000"))
          : t.late_latest(text(late.window, "24h"));
    said.push([t.catch_up, lateness]);
  }
  said.push([t.overlap, word(t, `overlap_${overlap.mode}`)]);
  said.push([t.failure, failure.mode === "half_open" ? t.failure_half_open(text(failure.threshold, "5"), text(failure.cooldown, "5m")) : word(t, `failure_${failure.mode}`)]);
  if (document.max_concurrency !== undefined) said.push([t.limit, t.atOnce(String(document.max_concurrency), word(t, `full_${text(document.when_full, "queue")}`))]);
  const also = [
    document.rate !== undefined && t.rate(String(document.rate)),
    document.delay !== undefined && t.delay(String(document.delay)),
    document.jitter !== undefined && t.jitter(String(document.jitter)),
    document.max_runs !== undefined && t.maxRuns(String(document.max_runs)),
  ].filter((one): one is string => !!one);
  if (also.length) said.push([t.more, also.join(" ")]);
  return said;
}

/** Return short badges for the policies that differ from the default. */
export function badges(document: Document, t: Said): string[] {
  const { scopes } = document;
  return [
    document.overlap !== undefined && modeOf(document.overlap, "skip").mode !== usualOverlap(document) && t.badge_overlap(modeWord(modeOf(document.overlap, "skip").mode, t)),
    document.catch_up !== undefined && modeOf(document.catch_up, "latest").mode !== "latest" && t.badge_late(modeWord(modeOf(document.catch_up, "latest").mode, t)),
    document.failure !== undefined && modeOf(document.failure, "run_new").mode !== "run_new" && t.badge_failure(modeWord(modeOf(document.failure, "run_new").mode, t)),
    document.max_concurrency !== undefined && t.badge_limit(String(document.max_concurrency)),
    document.rate !== undefined && String(document.rate),
    Array.isArray(scopes) ? t.badge_scopes(String(scopes.length)) : typeof scopes === "string" && t.badge_provider(scopes),
    document.windows !== undefined && t.badge_windows,
    document.exclude !== undefined && t.badge_exclude,
    document.delay !== undefined && t.badge_delay(String(document.delay)),
    document.jitter !== undefined && t.badge_jitter(String(document.jitter)),
    document.expect !== undefined && t.badge_expect,
  ].filter((one): one is string => !!one);
}

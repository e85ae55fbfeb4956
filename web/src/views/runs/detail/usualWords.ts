import { words } from "../../../i18n";

export const usualWords = words({
  en: {
    longer: (factor: string) => `${factor} × longer than usual`,
    longerAlready: (factor: string) => `already ${factor} × longer than usual`,
    shorter: "shorter than usual",
    muchShorter: "much shorter than usual",
    usual: "as long as usual",
    within: "within the usual time",
    band: (took: string, p50: string, p95: string) => `${took}; runs of this job usually take ${p50} (p50) to ${p95} (p95)`,
  },
  zh: {
    longer: (factor: string) => `耗时是平常的 ${factor} 倍`,
    longerAlready: (factor: string) => `耗时已是平常的 ${factor} 倍`,
    shorter: "比平常短",
    muchShorter: "远比平常短",
    usual: "与平常一样",
    within: "在平常范围内",
    band: (took: string, p50: string, p95: string) => `${took}；该任务的运行平常耗时 ${p50}（p50）到 ${p95}（p95）`,
  },
});

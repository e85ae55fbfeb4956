import { words } from "../../i18n";

export const viewName = words({ en: { name: "Jobs" }, zh: { name: "任务" } });

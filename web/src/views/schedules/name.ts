import { words } from "../../i18n";

export const viewName = words({ en: { name: "Schedules" }, zh: { name: "计划" } });

import { words } from "../../i18n";

export const viewName = words({ en: { name: "Alerts" }, zh: { name: "告警" } });

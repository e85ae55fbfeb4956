import { words } from "../../i18n";

export const viewName = words({ en: { name: "Timeline" }, zh: { name: "时间线" } });

import { words } from "../../i18n";

export const viewName = words({ en: { name: "Upcoming" }, zh: { name: "即将运行" } });

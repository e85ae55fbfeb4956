import { words } from "../../i18n";

export const viewName = words({ en: { name: "Workers" }, zh: { name: "工作进程" } });

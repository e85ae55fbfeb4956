import { words } from "../../i18n";

export const viewName = words({ en: { name: "Runs" }, zh: { name: "运行" } });

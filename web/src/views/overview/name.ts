import { words } from "../../i18n";

export const viewName = words({ en: { name: "Overview" }, zh: { name: "总览" } });

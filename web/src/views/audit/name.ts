import { words } from "../../i18n";

export const viewName = words({ en: { name: "Audit" }, zh: { name: "审计" } });

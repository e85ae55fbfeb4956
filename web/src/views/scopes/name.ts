import { words } from "../../i18n";

export const viewName = words({ en: { name: "Scopes" }, zh: { name: "范围" } });

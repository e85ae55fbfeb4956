import { words } from "../../i18n";

export const viewName = words({ en: { name: "Access" }, zh: { name: "访问" } });

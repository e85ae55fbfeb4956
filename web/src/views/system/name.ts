import { words } from "../../i18n";

export const viewName = words({ en: { name: "System" }, zh: { name: "系统" } });

import { words } from "../../i18n";

export const viewName = words({ en: { name: "Errors" }, zh: { name: "错误" } });

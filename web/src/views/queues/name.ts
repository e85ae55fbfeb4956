import { words } from "../../i18n";

export const viewName = words({ en: { name: "Queues" }, zh: { name: "队列" } });

import type { View } from "../view";
import { AuditPage } from "./AuditPage";
import { viewName } from "./words";

const view: View = {
  id: "audit",
  icon: "audit",
  name: viewName,
  routes: [{ path: "/audit", page: AuditPage }],
};

export default view;

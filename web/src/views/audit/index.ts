import { later } from "../../router";
import type { View } from "../view";
import { viewName } from "./name";

const AuditPage = later(() => import("./AuditPage").then((file) => file.AuditPage));

const view: View = {
  id: "audit",
  key: "a",
  icon: "audit",
  name: viewName,
  routes: [{ path: "/audit", page: AuditPage }],
};

export default view;

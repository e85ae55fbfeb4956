import { later } from "../../router";
import type { View } from "../view";
import { viewName } from "./name";

const AlertsPage = later(() => import("./AlertsPage").then((file) => file.AlertsPage));

const view: View = {
  id: "alerts",
  key: "l",
  icon: "alerts",
  name: viewName,
  routes: [{ path: "/alerts", page: AlertsPage }],
};

export default view;

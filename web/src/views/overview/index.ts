import { later } from "../../router";
import type { View } from "../view";
import { viewName } from "./name";

const OverviewPage = later(() => import("./OverviewPage").then((file) => file.OverviewPage));

const view: View = {
  id: "overview",
  key: "o",
  icon: "overview",
  name: viewName,
  routes: [{ path: "/", page: OverviewPage }],
};

export default view;

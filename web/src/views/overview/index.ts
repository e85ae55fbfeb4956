import type { View } from "../view";
import { OverviewPage } from "./OverviewPage";
import { viewName } from "./words";

const view: View = {
  id: "overview",
  icon: "overview",
  name: viewName,
  routes: [{ path: "/", page: OverviewPage }],
};

export default view;

import type { View } from "../view";
import { RunPage } from "./RunPage";
import { RunsPage } from "./RunsPage";
import { viewName } from "./words";

const view: View = {
  id: "runs",
  icon: "runs",
  name: viewName,
  routes: [
    { path: "/runs", page: RunsPage },
    { path: "/runs/:id", page: RunPage },
  ],
};

export default view;

import type { View } from "../view";
import { RunPage } from "./detail/RunPage";
import { RunsPage } from "./list/RunsPage";
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

import type { View } from "../view";
import { JobPage } from "./JobPage";
import { JobsPage } from "./JobsPage";
import { viewName } from "./words";

const view: View = {
  id: "jobs",
  icon: "jobs",
  name: viewName,
  routes: [
    { path: "/jobs", page: JobsPage },
    { path: "/jobs/:name", page: JobPage },
  ],
};

export default view;

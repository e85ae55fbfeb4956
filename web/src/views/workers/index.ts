import type { View } from "../view";
import { WorkerPage } from "./WorkerPage";
import { WorkersPage } from "./WorkersPage";
import { viewName } from "./words";

const view: View = {
  id: "workers",
  icon: "workers",
  name: viewName,
  routes: [
    { path: "/workers", page: WorkersPage },
    { path: "/workers/:id", page: WorkerPage },
  ],
};

export default view;

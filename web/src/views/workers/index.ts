import { later } from "../../router";
import type { View } from "../view";
import { viewName } from "./name";

const WorkerPage = later(() => import("./WorkerPage").then((file) => file.WorkerPage));
const WorkersPage = later(() => import("./WorkersPage").then((file) => file.WorkersPage));

const view: View = {
  id: "workers",
  key: "w",
  icon: "workers",
  name: viewName,
  routes: [
    { path: "/workers", page: WorkersPage },
    { path: "/workers/:id", page: WorkerPage },
  ],
};

export default view;

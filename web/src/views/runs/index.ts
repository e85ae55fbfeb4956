import { later } from "../../router";
import type { View } from "../view";
import { viewName } from "./name";

const RunPage = later(() => import("./detail/RunPage").then((file) => file.RunPage));
const RunsPage = later(() => import("./list/RunsPage").then((file) => file.RunsPage));

const view: View = {
  id: "runs",
  key: "r",
  icon: "runs",
  name: viewName,
  routes: [
    { path: "/runs", page: RunsPage },
    { path: "/runs/:id", page: RunPage },
  ],
};

export default view;

import { later } from "../../router";
import type { View } from "../view";
import { viewName } from "./name";

const JobPage = later(() => import("./JobPage").then((file) => file.JobPage));
const JobsPage = later(() => import("./JobsPage").then((file) => file.JobsPage));

const view: View = {
  id: "jobs",
  key: "j",
  icon: "jobs",
  name: viewName,
  routes: [
    { path: "/jobs", page: JobsPage },
    { path: "/jobs/:name", page: JobPage },
  ],
};

export default view;

import { later } from "../../router";
import type { View } from "../view";
import { viewName } from "./name";

const EditPage = later(() => import("./editor/EditorPage").then((file) => file.EditPage));
const NewPage = later(() => import("./editor/EditorPage").then((file) => file.NewPage));
const SchedulePage = later(() => import("./detail/SchedulePage").then((file) => file.SchedulePage));
const SchedulesPage = later(() => import("./list/SchedulesPage").then((file) => file.SchedulesPage));

const view: View = {
  id: "schedules",
  key: "s",
  icon: "schedules",
  name: viewName,
  routes: [
    { path: "/schedules", page: SchedulesPage },
    { path: "/schedules:new", page: NewPage },
    { path: "/schedules/:name", page: SchedulePage },
    { path: "/schedules/:name/edit", page: EditPage },
  ],
};

export default view;

import type { View } from "../view";
import { EditPage, NewPage } from "./editor/EditorPage";
import { SchedulePage } from "./detail/SchedulePage";
import { SchedulesPage } from "./list/SchedulesPage";
import { viewName } from "./words";

const view: View = {
  id: "schedules",
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

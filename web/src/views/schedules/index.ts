import { notYet } from "../NotYet";
import type { View } from "../view";
import { SchedulesPage } from "./SchedulesPage";
import { viewName } from "./words";

const Page = notYet(viewName, "rota schedule ls");

const view: View = {
  id: "schedules",
  icon: "schedules",
  name: viewName,
  routes: [{ path: "/schedules", page: SchedulesPage }, { path: "/schedules:new", page: Page }, { path: "/schedules/:name", page: Page }, { path: "/schedules/:name/edit", page: Page }],
};

export default view;

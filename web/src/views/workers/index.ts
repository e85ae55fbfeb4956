import { notYet } from "../NotYet";
import type { View } from "../view";
import { viewName } from "./words";

const Page = notYet(viewName, "rota workers ls");

const view: View = {
  id: "workers",
  icon: "workers",
  name: viewName,
  routes: [{ path: "/workers", page: Page }, { path: "/workers/:id", page: Page }],
};

export default view;

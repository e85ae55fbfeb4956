import { notYet } from "../NotYet";
import type { View } from "../view";
import { viewName } from "./words";

const Page = notYet(viewName, "rota run ls");

const view: View = {
  id: "runs",
  icon: "runs",
  name: viewName,
  routes: [{ path: "/runs", page: Page }, { path: "/runs/:id", page: Page }],
};

export default view;

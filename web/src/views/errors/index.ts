import { notYet } from "../NotYet";
import type { View } from "../view";
import { viewName } from "./words";

const Page = notYet(viewName, "rota run ls --state failed");

const view: View = {
  id: "errors",
  icon: "errors",
  name: viewName,
  routes: [{ path: "/errors", page: Page }, { path: "/errors/:id", page: Page }],
};

export default view;

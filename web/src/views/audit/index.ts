import { notYet } from "../NotYet";
import type { View } from "../view";
import { viewName } from "./words";

const Page = notYet(viewName, "rota audit");

const view: View = {
  id: "audit",
  icon: "audit",
  name: viewName,
  routes: [{ path: "/audit", page: Page }],
};

export default view;

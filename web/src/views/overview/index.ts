import { notYet } from "../NotYet";
import type { View } from "../view";
import { viewName } from "./words";

const Page = notYet(viewName, "rota top");

const view: View = {
  id: "overview",
  icon: "overview",
  name: viewName,
  routes: [{ path: "/", page: Page }],
};

export default view;

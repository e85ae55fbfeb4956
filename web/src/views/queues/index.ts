import { notYet } from "../NotYet";
import type { View } from "../view";
import { viewName } from "./words";

const Page = notYet(viewName, "rota queue ls");

const view: View = {
  id: "queues",
  icon: "queues",
  name: viewName,
  routes: [{ path: "/queues", page: Page }, { path: "/queues/:name", page: Page }],
};

export default view;

import { notYet } from "../NotYet";
import type { View } from "../view";
import { viewName } from "./words";

const Page = notYet(viewName, "rota run ls");

const view: View = {
  id: "timeline",
  icon: "timeline",
  name: viewName,
  routes: [{ path: "/timeline", page: Page }],
};

export default view;

import type { View } from "../view";
import { TimelinePage } from "./TimelinePage";
import { viewName } from "./words";

const view: View = {
  id: "timeline",
  icon: "timeline",
  name: viewName,
  routes: [{ path: "/timeline", page: TimelinePage }],
};

export default view;

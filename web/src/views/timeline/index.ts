import { later } from "../../router";
import type { View } from "../view";
import { viewName } from "./name";

const TimelinePage = later(() => import("./TimelinePage").then((file) => file.TimelinePage));

const view: View = {
  id: "timeline",
  key: "t",
  icon: "timeline",
  name: viewName,
  routes: [{ path: "/timeline", page: TimelinePage }],
};

export default view;

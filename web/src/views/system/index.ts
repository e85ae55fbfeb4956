import { later } from "../../router";
import type { View } from "../view";
import { viewName } from "./name";

const SystemPage = later(() => import("./SystemPage").then((file) => file.SystemPage));

const view: View = {
  id: "system",
  key: "y",
  icon: "system",
  name: viewName,
  routes: [{ path: "/system", page: SystemPage }],
};

export default view;

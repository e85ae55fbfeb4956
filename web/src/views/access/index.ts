import { later } from "../../router";
import type { View } from "../view";
import { viewName } from "./name";

const AccessPage = later(() => import("./AccessPage").then((file) => file.AccessPage));

const view: View = {
  id: "access",
  key: "k",
  icon: "access",
  name: viewName,
  routes: [{ path: "/access", page: AccessPage }],
};

export default view;

import { later } from "../../router";
import type { View } from "../view";
import { viewName } from "./name";

const ErrorsPage = later(() => import("./ErrorsPage").then((file) => file.ErrorsPage));

const view: View = {
  id: "errors",
  key: "e",
  icon: "errors",
  name: viewName,
  routes: [
    { path: "/error-groups", page: ErrorsPage },
    { path: "/error-groups/:id", page: ErrorsPage },
  ],
};

export default view;

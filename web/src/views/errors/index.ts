import type { View } from "../view";
import { ErrorsPage } from "./ErrorsPage";
import { viewName } from "./words";

const view: View = {
  id: "errors",
  icon: "errors",
  name: viewName,
  routes: [
    { path: "/error-groups", page: ErrorsPage },
    { path: "/error-groups/:id", page: ErrorsPage },
  ],
};

export default view;

import { later } from "../../router";
import type { View } from "../view";
import { viewName } from "./name";

const ScopePage = later(() => import("./ScopePage").then((file) => file.ScopePage));
const ScopesPage = later(() => import("./ScopesPage").then((file) => file.ScopesPage));

const view: View = {
  id: "scopes",
  key: "c",
  icon: "scopes",
  name: viewName,
  routes: [
    { path: "/scopes", page: ScopesPage },
    { path: "/scopes/:kind/:id", page: ScopePage },
  ],
};

export default view;

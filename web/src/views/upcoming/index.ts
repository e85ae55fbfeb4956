import { later } from "../../router";
import type { View } from "../view";
import { viewName } from "./name";

const UpcomingPage = later(() => import("./UpcomingPage").then((file) => file.UpcomingPage));

const view: View = {
  id: "upcoming",
  key: "u",
  icon: "upcoming",
  name: viewName,
  routes: [{ path: "/upcoming", page: UpcomingPage }],
};

export default view;

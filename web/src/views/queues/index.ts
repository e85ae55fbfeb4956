import { later } from "../../router";
import type { View } from "../view";
import { viewName } from "./name";

const QueuePage = later(() => import("./QueuePage").then((file) => file.QueuePage));
const QueuesPage = later(() => import("./QueuesPage").then((file) => file.QueuesPage));

const view: View = {
  id: "queues",
  key: "q",
  icon: "queues",
  name: viewName,
  routes: [
    { path: "/queues", page: QueuesPage },
    { path: "/queues/:name", page: QueuePage },
  ],
};

export default view;

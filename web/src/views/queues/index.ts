import type { View } from "../view";
import { QueuePage } from "./QueuePage";
import { QueuesPage } from "./QueuesPage";
import { viewName } from "./words";

const view: View = {
  id: "queues",
  icon: "queues",
  name: viewName,
  routes: [
    { path: "/queues", page: QueuesPage },
    { path: "/queues/:name", page: QueuePage },
  ],
};

export default view;

/** All views, in the order of the navigation. */
import audit from "./audit";
import errors from "./errors";
import jobs from "./jobs";
import overview from "./overview";
import queues from "./queues";
import runs from "./runs";
import schedules from "./schedules";
import timeline from "./timeline";
import type { View } from "./view";
import workers from "./workers";

export const views: View[] = [overview, schedules, runs, timeline, errors, workers, queues, jobs, audit];

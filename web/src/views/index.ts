/** All views, in the order of the navigation. */
import access from "./access";
import alerts from "./alerts";
import audit from "./audit";
import errors from "./errors";
import jobs from "./jobs";
import overview from "./overview";
import queues from "./queues";
import runs from "./runs";
import schedules from "./schedules";
import scopes from "./scopes";
import system from "./system";
import timeline from "./timeline";
import upcoming from "./upcoming";
import type { View } from "./view";
import workers from "./workers";

export const views: View[] = [overview, schedules, runs, timeline, upcoming, errors, workers, queues, jobs, scopes, alerts, access, audit, system];

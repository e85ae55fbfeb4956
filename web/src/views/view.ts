/** What a view tells the shell about itself. */
import type { Words } from "../i18n";
import type { Route } from "../router";
import type { IconName } from "../ui/icons";

export interface View {
  id: string;
  icon: IconName;
  /** As the rail calls it. */
  name: Words<{ name: string }>;
  /** The first is where the rail leads. */
  routes: [Route, ...Route[]];
}

/** Description of a view for the shell. */
import type { Words } from "../i18n";
import type { Route } from "../router";
import type { IconName } from "../ui/icons";

export interface View {
  id: string;
  icon: IconName;
  /** Letter that leads there after `g`. */
  key?: string;
  /** Name in the navigation. */
  name: Words<{ name: string }>;
  /** The navigation links to the first route. */
  routes: [Route, ...Route[]];
}

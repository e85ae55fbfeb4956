/** Button that opens a menu of actions or choices. */
import { Button as AriaButton, Menu as AriaMenu, MenuItem, MenuTrigger, Popover } from "react-aria-components";
import { Icon, type IconName } from "../icons";

export interface MenuEntry {
  id: string;
  name: string;
  danger?: boolean;
  disabled?: boolean;
}

interface MenuProps {
  label: string;
  icon?: IconName;
  /** Text of the button, next to the icon. */
  text?: string;
  entries: MenuEntry[];
  onAction: (id: string) => void;
  /** Id of the selected entry, if the menu is a choice. */
  chosen?: string;
  className?: string;
}

export function Menu({ label, icon, text, entries, onAction, chosen, className = "button plain" }: MenuProps) {
  return (
    <MenuTrigger>
      <AriaButton className={text ? className : `${className} icon`} aria-label={label}>
        {icon && <Icon name={icon} />}
        {text}
      </AriaButton>
      <Popover className="menu" placement="bottom end">
        <AriaMenu
          aria-label={label}
          onAction={(key) => onAction(String(key))}
          {...(chosen === undefined ? {} : { selectionMode: "single" as const, selectedKeys: [chosen], disallowEmptySelection: true })}
        >
          {entries.map((entry) => (
            <MenuItem key={entry.id} id={entry.id} isDisabled={entry.disabled} className={entry.danger ? "danger" : ""}>
              {entry.name}
            </MenuItem>
          ))}
        </AriaMenu>
      </Popover>
    </MenuTrigger>
  );
}

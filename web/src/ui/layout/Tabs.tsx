/** Tabs. The address holds the selected one. */
import type { ReactNode } from "react";
import { Tab, TabList, TabPanel, Tabs as AriaTabs } from "react-aria-components";
import { useParameter } from "../../router";

export interface TabItem {
  id: string;
  name: string;
  count?: number;
  content: ReactNode;
}

export function Tabs({ items, label, parameter = "tab" }: { items: TabItem[]; label: string; parameter?: string }) {
  const [chosen, choose] = useParameter(parameter);
  const first = items[0]!.id;
  const selected = items.some((item) => item.id === chosen) ? chosen! : first;
  return (
    <AriaTabs className="tabs" selectedKey={selected} onSelectionChange={(key) => choose(key === first ? null : String(key))}>
      <TabList aria-label={label}>
        {items.map((item) => (
          <Tab key={item.id} id={item.id}>
            {item.name}
            {item.count !== undefined && <span className="count">{item.count}</span>}
          </Tab>
        ))}
      </TabList>
      {items.map((item) => (
        <TabPanel key={item.id} id={item.id}>
          {item.content}
        </TabPanel>
      ))}
    </AriaTabs>
  );
}

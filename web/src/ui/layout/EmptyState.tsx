/** Empty state: the reason and the next step. */
import type { ReactNode } from "react";
import { Command } from "../forms/Button";

export function EmptyState({ title, command, children }: { title: string; command?: string | string[]; children?: ReactNode }) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {children && <p>{children}</p>}
      {(typeof command === "string" ? [command] : (command ?? [])).map((text) => (
        <Command key={text} text={text} />
      ))}
    </div>
  );
}

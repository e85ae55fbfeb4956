/** Tooltip of a button, on hover and focus. */
import type { ReactNode } from "react";
import { Button, Tooltip, TooltipTrigger, type ButtonProps } from "react-aria-components";

export function HintedButton({ text, children, ...rest }: ButtonProps & { text: string; children: ReactNode }) {
  return (
    <TooltipTrigger delay={350} closeDelay={60}>
      <Button {...rest}>{children}</Button>
      <Tooltip className="tooltip" offset={6}>
        {text}
      </Tooltip>
    </TooltipTrigger>
  );
}

/** Buttons. `danger` marks an action that cannot be undone. */
import { useState, type ButtonHTMLAttributes } from "react";
import { useWords } from "../../i18n";
import { common } from "../../i18n/common";
import { Icon, type IconName } from "../icons";

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  look?: "primary" | "plain" | "danger" | "danger primary";
  icon?: IconName;
  small?: boolean;
  busy?: boolean;
  /** Accessible name of an icon-only button. */
  label?: string;
}

export function Button({ look, icon, small, busy, label, className, children, disabled, ...rest }: ButtonProps) {
  const kinds = ["button", look, small && "small", icon && children === undefined && "icon", className];
  return (
    <button type="button" className={kinds.filter(Boolean).join(" ")} aria-label={label} title={label} disabled={disabled || busy} aria-busy={busy} {...rest}>
      {icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

export function CopyButton({ text, label }: { text: string; label?: string }) {
  const t = useWords(common);
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    window.setTimeout(() => setCopied(false), 1500);
  };
  return <Button look="plain" small icon={copied ? "check" : "copy"} label={copied ? t.copied : (label ?? t.copy)} onClick={() => void copy()} />;
}

/** Terminal command with a copy button. */
export function Command({ text }: { text: string }) {
  return (
    <div className="command">
      <code tabIndex={0}>{text}</code>
      <CopyButton text={text} />
    </div>
  );
}

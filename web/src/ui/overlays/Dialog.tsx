/** Dialogs. A confirmation names the object, the count and the consequence. */
import type { ReactNode } from "react";
import { Dialog as AriaDialog, Heading, Modal, ModalOverlay } from "react-aria-components";
import type { Problem } from "../../api/problem";
import { useWords } from "../../i18n";
import { common } from "../../i18n/common";
import { Button } from "../forms/Button";
import { ProblemNotice } from "../layout/ErrorState";

interface DialogProps {
  title: string;
  open: boolean;
  onClose: () => void;
  wide?: boolean;
  /** Ask for an answer: a click outside does not close the dialog. */
  alert?: boolean;
  children: ReactNode;
}

export function Dialog({ title, open, onClose, wide, alert, children }: DialogProps) {
  return (
    <ModalOverlay className="dialog-veil" isOpen={open} onOpenChange={(is) => !is && onClose()} isDismissable={!alert}>
      <Modal className={wide ? "dialog wide" : "dialog"}>
        <AriaDialog role={alert ? "alertdialog" : "dialog"}>
          <Heading slot="title">{title}</Heading>
          {children}
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  );
}

interface FormProps {
  title: string;
  onClose: () => void;
  /** Label of the button that submits. */
  action: string;
  onSubmit: () => void;
  /** False while what is typed cannot be sent. */
  ready: boolean;
  /** Why it cannot. */
  why?: string;
  busy?: boolean;
  problem?: Problem | null;
  children: ReactNode;
}

/** Dialog with fields: Enter submits. */
export function FormDialog({ title, onClose, action, onSubmit, ready, why, busy, problem, children }: FormProps) {
  const t = useWords(common);
  return (
    <Dialog title={title} open onClose={onClose}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (ready && !busy) onSubmit();
        }}
      >
        {children}
        {problem && <ProblemNotice problem={problem} />}
        <footer>
          <Button onClick={onClose}>{t.notNow}</Button>
          <Button type="submit" look="primary" disabled={!ready} busy={busy} title={ready ? undefined : why}>
            {action}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}

interface ConfirmProps {
  /** `Cancel 3 runs of crawl?` */
  title: string;
  open: boolean;
  onClose: () => void;
  /** Consequence of the action: `Running handlers are asked to stop…` */
  consequence: ReactNode;
  /** Label of the confirm button: `Cancel 3 runs`. */
  action: string;
  onConfirm: () => void;
  danger?: boolean;
  busy?: boolean;
  problem?: Problem | null;
  children?: ReactNode;
}

export function ConfirmDialog({ title, open, onClose, consequence, action, onConfirm, danger, busy, problem, children }: ConfirmProps) {
  const t = useWords(common);
  return (
    <Dialog title={title} open={open} onClose={onClose} alert>
      <div className="hostile">{consequence}</div>
      {children}
      {problem && <ProblemNotice problem={problem} />}
      <footer>
        <Button onClick={onClose}>{t.notNow}</Button>
        <Button look={danger ? "danger primary" : "primary"} busy={busy} onClick={onConfirm} autoFocus>
          {action}
        </Button>
      </footer>
    </Dialog>
  );
}

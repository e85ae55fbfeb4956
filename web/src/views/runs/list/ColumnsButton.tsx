/** Button and dialog to choose the columns of a list. */
import { useState } from "react";
import { useWords } from "../../../i18n";
import { common } from "../../../i18n/common";
import { Button, Dialog, type Column } from "../../../ui";
import { findingWords } from "./findingWords";

interface ColumnsProps<T> {
  columns: Column<T>[];
  shown: string[];
  onChange: (shown: string[]) => void;
}

export function ColumnsButton<T>({ columns, shown, onChange }: ColumnsProps<T>) {
  const t = useWords(findingWords);
  const both = useWords(common);
  const [open, setOpen] = useState(false);
  const toggle = (id: string) => onChange(columns.map((column) => column.id).filter((each) => (each === id ? !shown.includes(id) : shown.includes(each))));
  return (
    <>
      <Button icon="columns" label={t.columns} onClick={() => setOpen(true)} />
      <Dialog title={t.columns} open={open} onClose={() => setOpen(false)}>
        <div className="runs-columns">
          {columns.map((column, place) => (
            <label key={column.id} className="row">
              <input type="checkbox" checked={shown.includes(column.id)} disabled={place === 0} onChange={() => toggle(column.id)} />
              {column.name}
            </label>
          ))}
        </div>
        <p className="quiet">{t.columnsAbout}</p>
        <footer>
          <Button look="primary" onClick={() => setOpen(false)}>
            {both.close}
          </Button>
        </footer>
      </Dialog>
    </>
  );
}

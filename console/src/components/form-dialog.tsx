/** A form in a dialog. It shows the error of a rejected submission and stays open. */
import { type FormEvent, type ReactNode, useState } from 'react';
import { ErrorPanel } from './error-panel.tsx';
import { ModalDialog } from './modal-dialog.tsx';

interface Props {
  readonly isOpen: boolean;
  readonly title: string;
  /** The verb on the button, such as `Register`. */
  readonly verb: string;
  readonly children: ReactNode;
  readonly onSubmit: (values: FormData) => Promise<unknown>;
  /** Returns whether the caller shows the failure; the dialog shows any other one itself. */
  readonly onFailure?: (failure: unknown) => Promise<boolean>;
  /** Whether the form cannot be submitted now. */
  readonly isHeld?: boolean;
  readonly onClose: () => void;
}

export function FormDialog({ isOpen, title, onClose, ...content }: Props) {
  return (
    <ModalDialog isOpen={isOpen} title={title} onClose={onClose}>
      <Form onClose={onClose} {...content} />
    </ModalDialog>
  );
}

function Form({ verb, children, onSubmit, onFailure, isHeld = false, onClose }: Omit<Props, 'isOpen' | 'title'>) {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const submit = async (event: FormEvent<HTMLFormElement>): Promise<void> => {
    event.preventDefault();
    if (isBusy || isHeld) return;
    setBusy(true);
    setError(null);
    const values = new FormData(event.currentTarget);
    try {
      await onSubmit(values);
      onClose();
    } catch (failure) {
      const isShown = onFailure !== undefined && (await onFailure(failure).catch(() => false));
      if (!isShown) setError(failure);
      setBusy(false);
    }
  };
  return (
    <form className="form" onSubmit={(event) => void submit(event)}>
      {children}
      {error !== null && <ErrorPanel error={error} />}
      <div className="buttons">
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button type="submit" className="primary" disabled={isBusy || isHeld}>
          {verb}
        </button>
      </div>
    </form>
  );
}

/** The text of a field; empty if it is not in the form. */
export function textOf(values: FormData, name: string): string {
  const value = values.get(name);
  return typeof value === 'string' ? value.trim() : '';
}

export function TextField({
  label,
  name,
  isRequired = false,
  ...input
}: {
  readonly label: string;
  readonly name: string;
  readonly isRequired?: boolean;
  readonly placeholder?: string;
  readonly defaultValue?: string;
  readonly maxLength?: number;
}) {
  return (
    <label className="field">
      <span>{label}</span>
      <input name={name} required={isRequired} autoComplete="off" spellCheck={false} {...input} />
    </label>
  );
}

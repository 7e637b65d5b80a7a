/** Asks before something is destroyed: it names what ends, and a word must be typed for what cannot be undone. */
import { type FormEvent, type ReactNode, useState } from 'react';
import { ErrorPanel } from './error-panel.tsx';
import { ModalDialog } from './modal-dialog.tsx';

interface Props {
  readonly isOpen: boolean;
  /** Such as `Delete the policy "ci-read"?` */
  readonly title: string;
  /** The verb on the button, such as `Delete`. */
  readonly verb: string;
  /** Must be typed to confirm; usually the name of what is destroyed. */
  readonly typed?: string;
  /** What is destroyed, and what stays. */
  readonly children: ReactNode;
  /** The dialog shows the error of a rejected promise and stays open. */
  readonly onConfirm: () => Promise<unknown>;
  readonly onClose: () => void;
}

export function ConfirmDialog({ isOpen, title, onClose, ...content }: Props) {
  return (
    <ModalDialog isOpen={isOpen} title={title} className="confirm" onClose={onClose}>
      <ConfirmForm onClose={onClose} {...content} />
    </ModalDialog>
  );
}

function ConfirmForm({ verb, typed, children, onConfirm, onClose }: Omit<Props, 'isOpen' | 'title'>) {
  const [text, setText] = useState('');
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const isConfirmed = typed === undefined || text === typed;
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    if (!isConfirmed || isBusy) return;
    setBusy(true);
    setError(null);
    try {
      await onConfirm();
      onClose();
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  return (
    <form onSubmit={(event) => void submit(event)}>
      <div className="confirm-text">{children}</div>
      {typed !== undefined && (
        <label className="field">
          <span>
            Type <code>{typed}</code> to confirm
          </span>
          <input autoComplete="off" spellCheck={false} value={text} onChange={({ target }) => setText(target.value)} />
        </label>
      )}
      {error !== null && <ErrorPanel error={error} />}
      <div className="buttons">
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button type="submit" className="danger" disabled={!isConfirmed || isBusy}>
          {verb}
        </button>
      </div>
    </form>
  );
}

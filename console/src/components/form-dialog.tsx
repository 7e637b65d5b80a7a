/** Dialogs: a form, and a confirmation. Each shows the error of a rejected submission and stays open. */
import { type FormEvent, type ReactNode, useEffect, useId, useRef, useState } from 'react';
import { ErrorPanel } from './states.tsx';

interface ModalProps {
  readonly isOpen: boolean;
  readonly title: string;
  readonly className?: string | undefined;
  /** Also called by the browser, when Escape closes the dialog. */
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** The children exist only while the dialog is open, so that it always opens without input. */
export function ModalDialog({ isOpen, title, className, onClose, children }: ModalProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => {
    if (isOpen) dialog.current?.showModal();
    else dialog.current?.close();
  }, [isOpen]);
  return (
    <dialog ref={dialog} className={className} aria-labelledby={titleId} onClose={onClose}>
      <h2 id={titleId}>{title}</h2>
      {isOpen && children}
    </dialog>
  );
}

interface FormProps extends ModalProps {
  /** The verb on the button, such as `Register`. */
  readonly verb: string;
  /** The dialog closes unless it resolves to false. Then the first invalid field gets the focus. */
  readonly onSubmit: (values: FormData) => Promise<unknown>;
  /** Returns whether the caller shows the failure. The dialog shows any other failure itself. */
  readonly onFailure?: (failure: unknown) => Promise<boolean>;
  /** Whether the form cannot be submitted now. */
  readonly isHeld?: boolean;
  /** The text of the button that closes the dialog; `Cancel` by default. */
  readonly cancel?: string;
}

/** A dialog with a class lays out its fields itself. */
export function FormDialog({ isOpen, title, className, onClose, ...content }: FormProps) {
  return (
    <ModalDialog isOpen={isOpen} title={title} className={className} onClose={onClose}>
      <Form kind={className === undefined ? 'form' : undefined} tone="primary" onClose={onClose} {...content} />
    </ModalDialog>
  );
}

interface FormContent extends Omit<FormProps, 'isOpen' | 'title' | 'className'> {
  /** The CSS class for the layout. */
  readonly kind?: string | undefined;
  readonly tone: 'primary' | 'danger';
}

function Form({
  kind,
  tone,
  verb,
  children,
  onSubmit,
  onFailure,
  isHeld = false,
  cancel = 'Cancel',
  onClose,
}: FormContent) {
  const form = useRef<HTMLFormElement>(null);
  const [isBusy, setBusy] = useState(false);
  /** Submissions with invalid fields. */
  const [rejected, setRejected] = useState(0);
  const [error, setError] = useState<unknown>(null);
  // In an effect, because the fields are marked as invalid by the render after the submission.
  useEffect(() => {
    if (rejected > 0) form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [rejected]);
  const submit = async (event: FormEvent<HTMLFormElement>): Promise<void> => {
    event.preventDefault();
    if (isBusy || isHeld) return;
    setBusy(true);
    setError(null);
    try {
      if ((await onSubmit(new FormData(event.currentTarget))) === false) setRejected((before) => before + 1);
      else onClose();
    } catch (failure) {
      const isShown = onFailure !== undefined && (await onFailure(failure).catch(() => false));
      if (!isShown) setError(failure);
    } finally {
      setBusy(false);
    }
  };
  return (
    <form ref={form} className={kind} onSubmit={(event) => void submit(event)}>
      {children}
      {error !== null && <ErrorPanel error={error} />}
      <div className="buttons">
        <button type="button" onClick={onClose}>
          {cancel}
        </button>
        <button type="submit" className={tone} disabled={isBusy || isHeld}>
          {verb}
        </button>
      </div>
    </form>
  );
}

interface ConfirmProps extends Omit<ModalProps, 'className'> {
  readonly verb: string;
  /** The word to type to confirm; usually the name of the resource to destroy. */
  readonly typed?: string;
  readonly onConfirm: () => Promise<unknown>;
}

/** Asks before something is destroyed. The children name the parts that end and the parts that stay. */
export function ConfirmDialog({ isOpen, title, onClose, ...content }: ConfirmProps) {
  return (
    <ModalDialog isOpen={isOpen} title={title} className="confirm" onClose={onClose}>
      <Confirmation onClose={onClose} {...content} />
    </ModalDialog>
  );
}

function Confirmation({ verb, typed, children, onConfirm, onClose }: Omit<ConfirmProps, 'isOpen' | 'title'>) {
  const [text, setText] = useState('');
  return (
    <Form
      tone="danger"
      verb={verb}
      isHeld={typed !== undefined && text !== typed}
      onSubmit={onConfirm}
      onClose={onClose}
    >
      <div className="confirm-text">{children}</div>
      {typed !== undefined && (
        <label className="field">
          <span>
            Type <code>{typed}</code> to confirm
          </span>
          <input autoComplete="off" spellCheck={false} value={text} onChange={({ target }) => setText(target.value)} />
        </label>
      )}
    </Form>
  );
}

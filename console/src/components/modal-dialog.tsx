/** A modal dialog with its title. Its children exist only while it is open, so that each time begins without input. */
import { type ReactNode, useEffect, useId, useRef } from 'react';

interface Props {
  readonly isOpen: boolean;
  readonly title: string;
  readonly className?: string;
  /** Also when the browser closes it, by Escape. */
  readonly onClose: () => void;
  readonly children: ReactNode;
}

export function ModalDialog({ isOpen, title, className, onClose, children }: Props) {
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

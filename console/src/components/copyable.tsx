/** A text such as an id, with a button that copies it. Never for credential values. */
import { useState } from 'react';
import { announce } from './live-region.tsx';

interface Props {
  readonly text: string;
  /** The name of the copied text, such as `the request id`. */
  readonly what: string;
}

const SHOWN_MS = 2000;

export function Copyable({ text, what }: Props) {
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      return announce('The browser does not allow copying. Select the text instead.');
    }
    announce(`Copied ${what}.`);
    setCopied(true);
    setTimeout(() => setCopied(false), SHOWN_MS);
  };
  return (
    <span className="copyable">
      <code>{text}</code>
      <button type="button" className="small" aria-label={`Copy ${what}`} onClick={() => void copy()}>
        {isCopied ? 'Copied' : 'Copy'}
      </button>
    </span>
  );
}

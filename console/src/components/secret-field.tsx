/**
 * A masked field for a secret of any number of lines, which keeps it exactly as it was pasted. INVARIANT: the secret is
 * only in the field, and in no state of a component. The owner reads it when it is sent, and then empties the field.
 */
import {
  type ClipboardEvent,
  type DragEvent,
  type KeyboardEvent,
  type Ref,
  useId,
  useImperativeHandle,
  useRef,
  useState,
} from 'react';
import { LeaseholdError } from '../../../src/client/errors.ts';
import { describeSecret, FROM_FILE, fromFieldText, toFieldText } from './secret-text.ts';
import { ErrorPanel } from './states.tsx';

export interface SecretInput {
  /** @throws LeaseholdError INVALID_REQUEST for text that cannot be sent unchanged */
  read(): string;
  clear(): void;
}

interface Props {
  readonly ref: Ref<SecretInput>;
  readonly label: string;
}

/** The pasted or dropped text, before the browser changes its line breaks. @throws LeaseholdError INVALID_REQUEST */
function textOf(data: DataTransfer): string {
  if (data.files.length > 0) throw new LeaseholdError('INVALID_REQUEST', `value: is text and not a file. ${FROM_FILE}`);
  return toFieldText(data.getData('text/plain'));
}

function describe(field: HTMLTextAreaElement): string {
  try {
    return describeSecret(fromFieldText(field.value));
  } catch {
    // Submitting the form reports the problem.
    return '';
  }
}

export function SecretField({ ref, label }: Props) {
  const field = useRef<HTMLTextAreaElement>(null);
  const [fieldId, summaryId] = [useId(), useId()];
  const [isShown, setShown] = useState(false);
  const [summary, setSummary] = useState('');
  const [error, setError] = useState<unknown>(null);
  useImperativeHandle(ref, () => ({
    read: () => fromFieldText(field.current?.value ?? ''),
    clear: () => {
      if (field.current !== null) field.current.value = '';
      setSummary('');
      setShown(false);
    },
  }));
  const insert = (event: ClipboardEvent<HTMLTextAreaElement> | DragEvent<HTMLTextAreaElement>, data: DataTransfer) => {
    const { currentTarget } = event;
    event.preventDefault();
    setError(null);
    try {
      currentTarget.setRangeText(textOf(data), currentTarget.selectionStart, currentTarget.selectionEnd, 'end');
      setSummary(describe(currentTarget));
    } catch (failure) {
      setError(failure);
    }
  };
  /** Prevents copying a masked text, as a password field does. */
  const take = (event: ClipboardEvent<HTMLTextAreaElement>): void => {
    const { currentTarget, clipboardData, type } = event;
    const { selectionStart: from, selectionEnd: to, value } = currentTarget;
    event.preventDefault();
    if (!isShown || from === to) return;
    clipboardData.setData('text/plain', fromFieldText(value.slice(from, to)));
    if (type !== 'cut') return;
    currentTarget.setRangeText('', from, to, 'end');
    setSummary(describe(currentTarget));
  };
  // WHY not Enter: it begins the next line.
  const submitByKey = (event: KeyboardEvent<HTMLTextAreaElement>): void => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    event.currentTarget.form?.requestSubmit();
  };
  return (
    <div className="field">
      <div className="secret-head">
        <label htmlFor={fieldId}>{label}</label>
        <button type="button" className="small" aria-pressed={isShown} onClick={() => setShown(!isShown)}>
          Show the value
        </button>
      </div>
      {/* WHY autocomplete off: a browser would otherwise keep the text to restore the page. */}
      <textarea
        ref={field}
        id={fieldId}
        className={isShown ? 'secret' : 'secret masked'}
        aria-describedby={summaryId}
        required
        rows={4}
        wrap={isShown ? 'soft' : 'off'}
        autoComplete="off"
        autoCapitalize="off"
        autoCorrect="off"
        spellCheck={false}
        translate="no"
        onCopy={take}
        onCut={take}
        onDragStart={(event) => event.preventDefault()}
        onPaste={(event) => insert(event, event.clipboardData)}
        onDrop={(event) => insert(event, event.dataTransfer)}
        onInput={({ currentTarget }) => {
          setError(null);
          setSummary(describe(currentTarget));
        }}
        onKeyDown={submitByKey}
      />
      <span id={summaryId} className="hint" role="status">
        {summary === '' ? 'Stored exactly as it is typed or pasted, line breaks and spaces included.' : summary}
      </span>
      {error !== null && <ErrorPanel error={error} />}
    </div>
  );
}

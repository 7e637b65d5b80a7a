/** Shows the problem of a field only after it was changed or left, or after a submission: not of a form just opened. */
import { type FocusEvent, useEffect, useRef, useState } from 'react';
import type { Checked, FormPart } from './policy-form.ts';

interface Touched {
  /** Those to show. */
  readonly problems: Checked['problems'];
  readonly touch: (part: FormPart) => void;
  /** For the field that the focus leaves. */
  readonly leave: (part: FormPart) => (event: FocusEvent) => void;
  /** Shows every problem, and moves the focus to the first invalid field within `form`. */
  readonly touchAll: (form: Element | null) => void;
}

export function useTouched(found: Checked['problems']): Touched {
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set());
  const [submissions, setSubmissions] = useState(0);
  const form = useRef<Element | null>(null);
  useEffect(() => {
    if (submissions > 0) form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [submissions]);
  const touch = (part: FormPart): void =>
    setTouched((before) => (before.has(part) ? before : new Set([...before, part])));
  return {
    problems: submissions > 0 ? found : Object.fromEntries(Object.entries(found).filter(([part]) => touched.has(part))),
    touch,
    leave:
      (part) =>
      ({ relatedTarget }) => {
        // A problem that appears would move the button away from the pointer.
        if (!(relatedTarget instanceof HTMLButtonElement)) touch(part);
      },
    touchAll: (element) => {
      form.current = element;
      setSubmissions((before) => before + 1);
    },
  };
}

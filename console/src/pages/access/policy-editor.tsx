/** Writes a policy: each field is checked while it is typed, and the difference is shown before it is saved. */
import { type FocusEvent, type FormEvent, type ReactNode, useEffect, useId, useRef, useState } from 'react';
import type { Tagged } from '../../../../src/client/leasehold.ts';
import { toPolicy } from '../../../../src/client/policy-drafts.ts';
import type { Policy as PolicyText } from '../../../../src/client/types.ts';
import { APPROVAL_EXTENTS, APPROVED_ACTIONS } from '../../../../src/core/approval-rule.ts';
import { ACTIONS, LIMIT_FIELDS } from '../../../../src/core/policy.ts';
import { type Conflict, ConflictNotice } from '../../components/edit-conflict.tsx';
import { ErrorPanel } from '../../components/error-panel.tsx';
import { ModalDialog } from '../../components/form-dialog.tsx';
import { announce } from '../../components/live-region.tsx';
import { PolicyDiff } from './policy-diff.tsx';
import { type Checked, check, type FormFields, type FormPart, NEW_POLICY, toFields } from './policy-form.ts';
import { sentenceOf } from './policy-sentence.ts';
import { findPolicyConflict, forgetDecisions, savePolicy } from './save-policy.ts';

interface Props {
  /** Null for a new policy. */
  readonly policy: Tagged<PolicyText> | null;
  readonly onSaved: (name: string) => void;
  readonly onClose: () => void;
}

const LIMIT_LABELS = {
  uses_per_hour: 'Uses per hour',
  bytes_per_hour: 'Bytes per hour',
  concurrent: 'Uses at the same time',
} as const;

export function PolicyEditor({ policy, onSaved, onClose }: Props) {
  // WHY not the property: the page may read a newer state, which the operator has not seen.
  const [base, setBase] = useState(policy);
  const before = base === null ? null : toPolicy(base.data);
  const [fields, setFields] = useState(() => (before === null ? NEW_POLICY : toFields(before)));
  const [conflict, setConflict] = useState<Conflict<PolicyText> | null>(null);
  const [isSaving, setSaving] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const { draft, problems: found } = check(fields);
  const { problems, touch, leave, touchAll } = useTouched(found);
  const set = (part: FormPart, changes: Partial<FormFields>): void => {
    setFields({ ...fields, ...changes });
    touch(part);
  };
  const save = async (event: FormEvent<HTMLFormElement>): Promise<void> => {
    event.preventDefault();
    if (draft === null) {
      touchAll(event.currentTarget);
      return;
    }
    if (isSaving) return;
    setSaving(true);
    setError(null);
    try {
      await savePolicy(base, draft);
      announce(`The policy ${draft.name} is saved.`);
      onSaved(draft.name);
    } catch (failure) {
      const found = await findPolicyConflict(failure, draft.name).catch(() => null);
      setConflict(found);
      if (found === null) setError(failure);
    } finally {
      setSaving(false);
    }
  };
  const reload = (): void => {
    setConflict(null);
    void forgetDecisions();
    if (conflict?.current == null) {
      onClose();
      return;
    }
    setBase(conflict.current);
    setFields(toFields(toPolicy(conflict.current.data)));
  };
  const text = (name: keyof FormFields, label: string, part: FormPart, isDisabled = false): ReactNode => (
    <Field label={label} problem={part === 'limits' || part === 'approval' ? undefined : problems[part]}>
      {(described) => (
        <input
          {...described}
          value={String(fields[name])}
          disabled={isDisabled}
          autoComplete="off"
          spellCheck={false}
          onChange={({ target }) => set(part, { [name]: target.value })}
          onBlur={leave(part)}
        />
      )}
    </Field>
  );
  const hasApproval = fields.approval_for !== '';
  return (
    <ModalDialog
      isOpen
      title={before === null ? 'New policy' : `Edit the policy ${before.name}`}
      className="wide"
      onClose={onClose}
    >
      <form onSubmit={(event) => void save(event)}>
        <div className="form">
          {text('name', 'Name', 'name', before !== null)}
          {text('principal', 'Principal', 'principal')}
          {text('max_ttl', 'Longest lease, in seconds', 'max_ttl')}
          <fieldset className="choices wide-field">
            <legend>Actions</legend>
            {ACTIONS.map((action) => (
              <label key={action} className="toggle">
                <input
                  type="checkbox"
                  checked={fields.actions.includes(action)}
                  onChange={({ target }) =>
                    set('actions', {
                      actions: target.checked
                        ? [...fields.actions, action]
                        : fields.actions.filter((each) => each !== action),
                    })
                  }
                />
                {action}
              </label>
            ))}
            {problems.actions !== undefined && <span className="field-problem">{problems.actions}</span>}
          </fieldset>
          <div className="wide-field">
            <Field label="Resources, one pattern on each line" problem={problems.resources}>
              {(described) => (
                <textarea
                  {...described}
                  value={fields.resources}
                  spellCheck={false}
                  onChange={({ target }) => set('resources', { resources: target.value })}
                  onBlur={leave('resources')}
                />
              )}
            </Field>
          </div>
          {LIMIT_FIELDS.map((name) => (
            <div key={name}>{text(name, `${LIMIT_LABELS[name]} (of use; empty: any)`, 'limits')}</div>
          ))}
          <Problem text={problems.limits} />
          <label className="field">
            <span>Approval by operators</span>
            <select
              value={fields.approval_for}
              onChange={({ target }) => set('approval', { approval_for: target.value })}
            >
              <option value="">Not needed</option>
              {APPROVED_ACTIONS.map((action) => (
                <option key={action} value={action}>{`To ${action}`}</option>
              ))}
            </select>
          </label>
          {hasApproval && (
            <>
              <label className="field">
                <span>One approval covers each</span>
                <select value={fields.each} onChange={({ target }) => set('approval', { each: target.value })}>
                  {APPROVAL_EXTENTS.map((extent) => (
                    <option key={extent}>{extent}</option>
                  ))}
                </select>
              </label>
              {text('scope', 'For: once, session, 5 uses, 600 seconds', 'approval')}
              {text('quorum', 'Operators that must approve', 'approval')}
              {text('timeout', 'Seconds until it times out', 'approval')}
              <Problem text={problems.approval} />
            </>
          )}
        </div>
        <Problem text={found.policy} />
        <section aria-label="What is saved" className="confirm-text">
          {draft !== null && (
            <>
              <p>{sentenceOf(draft)}</p>
              <PolicyDiff before={before} after={draft} />
            </>
          )}
        </section>
        {error !== null && <ErrorPanel error={error} />}
        {conflict !== null && (
          <ConflictNotice what={`The policy ${fields.name}`} conflict={conflict} onReload={reload} />
        )}
        <div className="buttons">
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="primary" disabled={isSaving || conflict !== null}>
            {before === null ? 'Create the policy' : 'Save the policy'}
          </button>
        </div>
      </form>
    </ModalDialog>
  );
}

interface Described {
  readonly id: string;
  readonly 'aria-invalid': boolean;
  readonly 'aria-describedby': string | undefined;
}

interface FieldProps {
  readonly label: string;
  readonly problem: string | undefined;
  readonly children: (described: Described) => ReactNode;
}

function Field({ label, problem, children }: FieldProps) {
  const [inputId, problemId] = [useId(), useId()];
  const isInvalid = problem !== undefined;
  return (
    <div className="field">
      <label htmlFor={inputId}>{label}</label>
      {children({ id: inputId, 'aria-invalid': isInvalid, 'aria-describedby': isInvalid ? problemId : undefined })}
      {isInvalid && (
        <span id={problemId} className="field-problem">
          {problem}
        </span>
      )}
    </div>
  );
}

function Problem({ text }: { readonly text: string | undefined }) {
  return text === undefined ? null : <p className="field-problem wide-field">{text}</p>;
}

interface Touched {
  /** Those to show. */
  readonly problems: Checked['problems'];
  readonly touch: (part: FormPart) => void;
  /** Handles that the focus leaves a field. */
  readonly leave: (part: FormPart) => (event: FocusEvent) => void;
  /** Shows every problem, and moves the focus to the first invalid field within `form`. */
  readonly touchAll: (form: Element | null) => void;
}

function useTouched(found: Checked['problems']): Touched {
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

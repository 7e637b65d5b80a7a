/** Edits a policy. Each field is checked while it is typed, and the difference is shown before it is saved. */
import { type FocusEvent, useState } from 'react';
import type { Tagged } from '../../../../src/client/leasehold.ts';
import type { Policy as PolicyText } from '../../../../src/client/types.ts';
import { Policy } from '../../../../src/vault/policies/policy.ts';
import { useEdit } from '../../components/edit-conflict.tsx';
import { Problem } from '../../components/fields.tsx';
import { FormDialog } from '../../components/form-dialog.tsx';
import { announce } from '../../components/live-region.tsx';
import { check, emptyFields, type FormFields, toFormFields } from '../../components/resource-form.ts';
import { ResourceInputs } from '../../components/resource-inputs.tsx';
import { PolicyDiff } from './policy-diff.tsx';
import { sentenceOf } from './policy-sentence.ts';
import { forgetDecisions, policySubject, savePolicy } from './save-policy.ts';

interface Props {
  /** Null for a new policy. */
  readonly policy: Tagged<PolicyText> | null;
  readonly onSaved: (name: string) => void;
  readonly onClose: () => void;
}

/** The texts of the form for a new policy. */
const NEW_POLICY: FormFields = { ...emptyFields(Policy.fields), principal: 'agent:', actions: ['retrieve'] };

const toFields = ({ data }: Tagged<PolicyText>): FormFields => toFormFields(Policy, Policy.fromReply(data));

export function PolicyEditor({ policy, onSaved, onClose }: Props) {
  const [fields, setFields] = useState(() => (policy === null ? NEW_POLICY : toFields(policy)));
  const { base, isBlocked, catchConflict, notice } = useEdit(policy, {
    subject: policySubject(String(fields['name'])),
    keeps: 'always',
    onReload: (current) => {
      void forgetDecisions();
      if (current === null) onClose();
      else setFields(toFields(current));
    },
  });
  const before = base === null ? null : Policy.fromReply(base.data);
  const { draft, problems: found, acrossFields } = check(Policy, fields);
  const { problems, touch, leave, touchAll } = useTouched(found);
  const set = (part: string, changes: FormFields): void => {
    setFields({ ...fields, ...changes });
    touch(part);
  };
  const save = async (): Promise<boolean> => {
    if (draft === null) {
      touchAll();
      return false;
    }
    await savePolicy(base, draft);
    announce(`The policy ${draft.name} is saved.`);
    onSaved(draft.name);
    return true;
  };
  return (
    <FormDialog
      isOpen
      title={before === null ? 'New policy' : `Edit the policy ${before.name}`}
      className="wide"
      verb={before === null ? 'Create the policy' : 'Save the policy'}
      isHeld={isBlocked}
      onSubmit={save}
      onFailure={catchConflict}
      onClose={onClose}
    >
      <div className="form">
        <ResourceInputs
          of={Policy.fields}
          fields={fields}
          problems={problems}
          fixed={before === null ? null : 'name'}
          onChange={set}
          onBlur={leave}
        />
      </div>
      <Problem text={acrossFields ?? undefined} />
      <section aria-label="Changes to save" className="confirm-text">
        {draft !== null && (
          <>
            <p>{sentenceOf(draft)}</p>
            <PolicyDiff before={before} after={draft} />
          </>
        )}
      </section>
      {notice}
    </FormDialog>
  );
}

type Problems = Readonly<Record<string, string>>;

interface Touched {
  /** The problems to show. */
  readonly problems: Problems;
  readonly touch: (part: string) => void;
  /** Returns the handler for a field that loses the focus. */
  readonly leave: (part: string) => (event: FocusEvent) => void;
  /** Shows every problem. */
  readonly touchAll: () => void;
}

function useTouched(found: Problems): Touched {
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set());
  const [isSubmitted, setSubmitted] = useState(false);
  const touch = (part: string): void =>
    setTouched((before) => (before.has(part) ? before : new Set([...before, part])));
  return {
    problems: isSubmitted ? found : Object.fromEntries(Object.entries(found).filter(([part]) => touched.has(part))),
    touch,
    leave:
      (part) =>
      ({ relatedTarget }) => {
        // A new problem would move the button away from the pointer.
        if (!(relatedTarget instanceof HTMLButtonElement)) touch(part);
      },
    touchAll: () => setSubmitted(true),
  };
}

/** The inputs of a form for a resource, each with its problem. */
import { type FocusEvent, Fragment } from 'react';
import type { Fields } from '../../../src/engine/field.ts';
import { LabelledField, Problem } from './fields.tsx';
import { type FormField, type FormFields, formFields } from './resource-form.ts';

interface Props {
  readonly of: Fields;
  readonly fields: FormFields;
  readonly problems: Readonly<Record<string, string>>;
  /** The name of the field that cannot be changed; null if all can. */
  readonly fixed: string | null;
  readonly onChange: (part: string, changes: FormFields) => void;
  readonly onBlur: (part: string) => (event: FocusEvent) => void;
}

export function ResourceInputs({ of, fields, problems, fixed, onChange, onBlur }: Props) {
  const all = formFields(of);
  const shown = all.filter(({ givenBy }) => givenBy === null || fields[givenBy] !== '');
  const isLast = ({ part }: FormField, at: number): boolean => shown[at + 1]?.part !== part;
  return shown.map((form, at) => {
    const { name, part } = form;
    const isPart = name !== part;
    return (
      <Fragment key={name}>
        <div className={isWide(form) ? 'wide-field' : undefined}>
          <Input
            form={form}
            value={fields[name] ?? ''}
            problem={isPart ? undefined : problems[part]}
            isFixed={name === fixed}
            onChange={(value) => onChange(part, { [name]: value })}
            onBlur={onBlur(part)}
          />
        </div>
        {isPart && isLast(form, at) && <Problem text={problems[part]} />}
      </Fragment>
    );
  });
}

const isWide = ({ field }: FormField): boolean => field.form.kind === 'list';

interface InputProps {
  readonly form: FormField;
  readonly value: string | readonly string[];
  readonly problem: string | undefined;
  readonly isFixed: boolean;
  readonly onChange: (value: string | readonly string[]) => void;
  readonly onBlur: (event: FocusEvent) => void;
}

function Input({ form: { name, field, mayBeEmpty }, value, problem, isFixed, onChange, onBlur }: InputProps) {
  const { form } = field;
  const { label = name, empty = 'none' } = field;
  if (form.kind === 'list' && form.item.kind === 'choice') {
    return (
      <fieldset className="choices wide-field">
        <legend>{label}</legend>
        {form.item.words.map((word) => (
          <label key={word} className="toggle">
            <input
              type="checkbox"
              checked={value.includes(word)}
              onChange={({ target }) =>
                onChange(target.checked ? [...value, word] : [...value].filter((each) => each !== word))
              }
            />
            {word}
          </label>
        ))}
        {problem !== undefined && <span className="field-problem">{problem}</span>}
      </fieldset>
    );
  }
  const text = String(value);
  const common = { value: text, disabled: isFixed, onBlur };
  return (
    <LabelledField
      label={mayBeEmpty && form.kind !== 'choice' ? `${label} (empty: ${empty})` : label}
      problem={problem}
    >
      {(described) => {
        if (form.kind === 'choice') {
          return (
            <select {...described} {...common} onChange={({ target }) => onChange(target.value)}>
              {mayBeEmpty && <option value="">{empty}</option>}
              {form.words.map((word) => (
                <option key={word}>{word}</option>
              ))}
            </select>
          );
        }
        const write = ({ target }: { readonly target: { readonly value: string } }): void => onChange(target.value);
        return form.kind === 'list' ? (
          <textarea {...described} {...common} spellCheck={false} onChange={write} />
        ) : (
          <input {...described} {...common} autoComplete="off" spellCheck={false} onChange={write} />
        );
      }}
    </LabelledField>
  );
}

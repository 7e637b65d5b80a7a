/** Labelled inputs of forms, with the problem of their value. */
import { type ComponentProps, type ReactNode, useId } from 'react';

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

export function LabelledField({ label, problem, children }: FieldProps) {
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

export function Problem({ text }: { readonly text: string | undefined }) {
  return text === undefined ? null : <p className="field-problem wide-field">{text}</p>;
}

interface ControlledTextFieldProps extends Omit<ComponentProps<'input'>, 'onChange'> {
  readonly label: string;
  readonly value: string;
  readonly problem?: string | undefined;
  readonly onChange: (value: string) => void;
}

/** A field of one line, whose text its owner keeps. */
export function ControlledTextField({ label, problem, onChange, ...input }: ControlledTextFieldProps) {
  return (
    <LabelledField label={label} problem={problem}>
      {(described) => (
        <input
          autoComplete="off"
          spellCheck={false}
          {...described}
          {...input}
          onChange={({ target }) => onChange(target.value)}
        />
      )}
    </LabelledField>
  );
}

/** The text of a field; empty if it is not in the form. */
export function textOf(values: FormData, name: string): string {
  const value = values.get(name);
  return typeof value === 'string' ? value.trim() : '';
}

export function FormTextField({
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

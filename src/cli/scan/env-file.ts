/** Env files: which they are, and which of their assignments hold a secret. */

import { isHarmlessName, isSecretName } from '../../masking/secret-names.ts';
import { UsageError } from '../../platform/errors.ts';
import { parseEnvFile } from '../../run/env-file.ts';
import { isReference } from '../../run/references.ts';
import { isPlaceholder } from './placeholder.ts';
import { ALLOW_COMMENT, type Finding, findInText, isAddress, type MovableFinding, matchKeyPattern } from './text.ts';

/** `.env`, `.env.local`, `prod.env`; templates of them are files like any other. */
export function isEnvFile(file: string): boolean {
  const name = file.slice(file.lastIndexOf('/') + 1);
  return /^\.env(?:\..+)?$|.\.env$/.test(name) && !/\.(?:example|sample|template|dist|defaults?)$/.test(name);
}

/** In an env file a value needs no look of randomness: its name is enough. What can't be read as one is searched like any text. */
export function findInEnvFile(bytes: Buffer, file: string): readonly Finding[] {
  const text = bytes.toString('utf8');
  try {
    const assignments = parseEnvFile(bytes, file);
    const found = assignments.flatMap(({ name, value, line, lineSpan }): MovableFinding[] => {
      if (bytes.subarray(...lineSpan).includes(ALLOW_COMMENT)) return [];
      const shape = shapeOf(name, value.reveal());
      return shape === null ? [] : [{ file, line, ...shape, name, value }];
    });
    // Comments hold keys too.
    const lines = new Set(
      assignments.flatMap(({ line, lineSpan }) => {
        const count = bytes
          .subarray(...lineSpan)
          .toString('latin1')
          .trimEnd()
          .split('\n').length;
        return Array.from({ length: count }, (_, at) => line + at);
      }),
    );
    const beside = findInText(text, file).filter(({ line }) => !lines.has(line));
    return [...found, ...beside].sort((one, other) => one.line - other.line);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return findInText(text, file);
  }
}

const NO_SECRET = /^(?:true|false|yes|no|on|off|null|none|\d{1,5})$/i;

function shapeOf(name: string, value: string): Pick<Finding, 'rule' | 'hint'> | null {
  if (value === '' || isReference(value)) return null;
  const shape = matchKeyPattern(value);
  if (shape !== null) return { rule: shape.rule, hint: shape.hint };
  if (isHarmlessName(name) || !isSecretName(name) || NO_SECRET.test(value) || isAddress(value)) return null;
  return isPlaceholder(value) ? null : { rule: 'secret-assigned', hint: '…' };
}

/** Recognizes env files, and finds the assignments in them that contain a secret. */

import { isHarmlessName, isSecretName } from '../../masking/secret-names.ts';
import { UsageError } from '../../platform/errors.ts';
import { parseEnvFile } from '../../run/env-file.ts';
import { isReference } from '../../run/references.ts';
import { isPlaceholder } from './placeholder.ts';
import { ALLOW_COMMENT, type Finding, findInText, isAddress, type MovableFinding, matchKeyPattern } from './text.ts';

/** True for `.env`, `.env.local`, `prod.env`; false for templates such as `.env.example`. */
export function isEnvFile(file: string): boolean {
  const name = file.slice(file.lastIndexOf('/') + 1);
  return /^\.env(?:\..+)?$|.\.env$/.test(name) && !/\.(?:example|sample|template|dist|defaults?)$/.test(name);
}

/**
 * In an env file the name is enough: the value need not look random. A file that cannot be parsed is searched as text.
 */
export function findInEnvFile(bytes: Buffer, file: string): readonly Finding[] {
  const text = bytes.toString('utf8');
  try {
    const assignments = parseEnvFile(bytes, file);
    const found = assignments.flatMap(({ name, value, line, lineSpan }): MovableFinding[] => {
      if (bytes.subarray(...lineSpan).includes(ALLOW_COMMENT)) return [];
      const match = classify(name, value.reveal());
      return match === null ? [] : [{ file, line, ...match, name, value }];
    });
    // Comments may contain keys too, so the text without the assignments is searched; its lines keep their numbers.
    const rest = Buffer.from(bytes);
    for (const { lineSpan } of assignments) blank(rest.subarray(...lineSpan));
    const outside = findInText(rest.toString('utf8'), file);
    return [...found, ...outside].sort((one, other) => one.line - other.line);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return findInText(text, file);
  }
}

function blank(line: Buffer): void {
  for (const [at, byte] of line.entries()) if (byte !== NEWLINE) line[at] = SPACE;
}

const [NEWLINE, SPACE] = [0x0a, 0x20];
const NOT_SECRET = /^(?:true|false|yes|no|on|off|null|none|\d{1,5})$/i;

function classify(name: string, value: string): Pick<Finding, 'rule' | 'hint'> | null {
  if (value === '' || isReference(value)) return null;
  const match = matchKeyPattern(value);
  if (match !== null) return { rule: match.rule, hint: match.hint };
  if (isHarmlessName(name) || !isSecretName(name) || NOT_SECRET.test(value) || isAddress(value)) return null;
  return isPlaceholder(value) ? null : { rule: 'secret-assigned', hint: '…' };
}

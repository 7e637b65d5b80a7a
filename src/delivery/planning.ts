/** What a program shall find in its environment, as people say it: `--env NAME=path`, and .env files with references. */
import type { Secret } from '../core/secret.ts';
import type { Wanted } from './borrowing.ts';
import { readEnvFile } from './envfile.ts';
import { Misuse } from './misuse.ts';
import { hasReferenceInside, isReference, parseReference, parseSource } from './references.ts';

const NAME = /^[A-Za-z_][A-Za-z0-9_.-]*$/;
const LONGEST_NAME = 255;

export interface Planned {
  readonly wanted: readonly Wanted[];
  /** What a file says itself. */
  readonly literals: readonly { readonly name: string; readonly value: Secret }[];
}

/** `env` are `NAME=path`, `envFiles` names of files. @throws Misuse */
export async function plan(env: readonly string[], envFiles: readonly string[]): Promise<Planned> {
  const places = new Map<string, string>();
  const place = (name: string, where: string): void => {
    const other = places.get(name);
    if (other !== undefined) throw new Misuse(`${name} is given twice: ${other}, and ${where}`);
    places.set(name, where);
  };
  const wanted: Wanted[] = [];
  const literals: { name: string; value: Secret }[] = [];
  for (const each of env) {
    const { name, source } = parsePair(each);
    place(name, '--env');
    wanted.push({ name, ...parseSource(source, `--env ${name}`) });
  }
  for (const file of envFiles) {
    for (const { name, value, line } of await readEnvFile(file)) {
      const where = `${file}, line ${line}`;
      checkName(name, where);
      place(name, where);
      const text = value.reveal();
      if (isReference(text)) wanted.push({ name, ...parseReference(text, where) });
      else {
        checkLiteral(text, where);
        literals.push({ name, value });
      }
    }
  }
  return { wanted, literals };
}

function parsePair(text: string): { name: string; source: string } {
  const sign = text.indexOf('=');
  if (sign === -1)
    throw new Misuse(
      '--env: is written NAME=path',
      'The path is that of a credential, as in --env TOKEN=prod/api/token.',
    );
  const name = text.slice(0, sign);
  checkName(name, '--env');
  return { name, source: text.slice(sign + 1) };
}

function checkName(name: string, where: string): void {
  if (!NAME.test(name) || name.length > LONGEST_NAME || name === '__proto__')
    throw new Misuse(`${where}: the name of a variable begins with a letter or _, and has letters, digits, _ . - only`);
}

function checkLiteral(text: string, where: string): void {
  if (text.includes('\0')) throw new Misuse(`${where}: holds a NUL, which no environment can`);
  if (hasReferenceInside(text))
    throw new Misuse(
      `${where}: a reference stands inside a value`,
      'It must be the whole value: the program puts its parts together.',
    );
}

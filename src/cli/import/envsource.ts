/** A .env file: each assignment is a draft under its name. */
import { parseEnvFile } from '../../delivery/envfile.ts';
import { Misuse } from '../../delivery/misuse.ts';
import { isReference } from '../../delivery/references.ts';
import { Mistake } from '../mistake.ts';
import { Reader, type Reading, typeByName } from './draft.ts';

/** @throws Mistake for what is no .env file */
export function readEnv(bytes: Uint8Array, name: string): Reading {
  const reader = new Reader();
  for (const { name: variable, value, line } of parse(bytes, name)) {
    const where = `${name}:${line}`;
    if (isReference(value.reveal())) reader.leaveOut(where, 'it is a reference to a credential already', 'empty');
    else reader.add({ names: [variable], value, type: typeByName(variable), description: '', where });
  }
  return reader;
}

function parse(bytes: Uint8Array, name: string) {
  try {
    return parseEnvFile(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), name);
  } catch (error) {
    if (error instanceof Misuse) throw new Mistake(error.message, error.hint);
    throw error;
  }
}

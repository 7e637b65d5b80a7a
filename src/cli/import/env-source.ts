/** A .env file: each assignment is a draft under its name. */
import { parseEnvFile } from '../../run/env-file.ts';
import { Misuse } from '../../run/errors.ts';
import { isReference } from '../../run/references.ts';
import { Mistake } from '../errors.ts';
import { Reader, type Reading, typeByName } from './item.ts';

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

/** A .env file: each assignment is a draft under its name. */
import { parseEnvFile } from '../../run/env-file.ts';
import { isReference } from '../../run/references.ts';
import { type ImportSource, Reader, typeByName } from './item.ts';

/** @throws UsageError for what is no .env file */
export function readEnv(bytes: Uint8Array, name: string): ImportSource {
  const reader = new Reader();
  for (const { name: variable, value, line } of parse(bytes, name)) {
    const where = `${name}:${line}`;
    if (isReference(value.reveal())) reader.leaveOut(where, 'it is a reference to a credential already', 'empty');
    else reader.add({ names: [variable], value, type: typeByName(variable), description: '', where });
  }
  return reader;
}

function parse(bytes: Uint8Array, name: string) {
  return parseEnvFile(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), name);
}

/** A JSON file: members of nested objects are segments of the path. */
import { UsageError } from '../../platform/errors.ts';
import { type ImportSource, Reader } from './item.ts';
import { parseJson } from './json.ts';
import { addMembers } from './members.ts';

/** @throws UsageError for what is no strict JSON, or no object */
export function readJsonFile(text: string, name: string): ImportSource {
  const root = parseJson(text, name);
  if (root.kind !== 'object') throw new UsageError(`${name}: must be an object: its keys become the paths`);
  const reader = new Reader();
  addMembers(reader, [], root, { description: '', where: (_names, line) => `${name}:${line}` });
  return reader;
}

/** Forgets what was read of credentials after a change. Values are never among it. */
import type { Query } from '@tanstack/react-query';
import { queries } from '../../session/queries.ts';

const READ_OF_CREDENTIALS = [
  'credential',
  'credentials',
  'tree',
  'search',
  'exposure',
  'targets',
  'matrix',
  'path-access',
];

const isOfCredentials = ({ queryKey }: Query): boolean => READ_OF_CREDENTIALS.includes(String(queryKey[0]));

export async function forgetCredentials(): Promise<void> {
  await queries.invalidateQueries({ predicate: isOfCredentials });
}

/** The details of what was deleted are not read again. */
export async function forgetDeleted(path: string): Promise<void> {
  queries.removeQueries({ predicate: (query) => isOfCredentials(query) && query.queryKey[1] === path });
  await forgetCredentials();
}

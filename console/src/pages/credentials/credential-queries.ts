/**
 * What several pages read of credentials, and how it is forgotten after a change or a retrieval. Values are never among
 * it.
 */
import { type Query, useQuery } from '@tanstack/react-query';
import { LeaseholdError } from '../../../../src/client/errors.ts';
import type { Tagged } from '../../../../src/client/leasehold.ts';
import type { CredentialTargets } from '../../../../src/client/types.ts';
import { type Conflict, findConflict } from '../../components/edit-conflict.tsx';
import { client } from '../../session/console-client.ts';
import { queries } from '../../session/queries.ts';

const READ_OF_CREDENTIALS = ['credential', 'credentials', 'tree', 'search', 'exposure', 'targets', 'matrix'];

const isOfCredentials = ({ queryKey }: Query): boolean => READ_OF_CREDENTIALS.includes(String(queryKey[0]));

export async function forgetCredentials(): Promise<void> {
  await queries.invalidateQueries({ predicate: isOfCredentials });
}

/** The details of what was deleted are not read again. */
export async function forgetDeleted(path: string): Promise<void> {
  queries.removeQueries({ predicate: (query) => isOfCredentials(query) && query.queryKey[1] === path });
  await forgetCredentials();
}

/** Null if it has none. */
export async function readTargets(path: string, signal: AbortSignal): Promise<Tagged<CredentialTargets> | null> {
  try {
    return await client.targets.readTagged(path, { signal });
  } catch (error) {
    if (error instanceof LeaseholdError && error.code === 'NOT_FOUND') return null;
    throw error;
  }
}

export function findTargetsConflict(failure: unknown, path: string): Promise<Conflict<CredentialTargets> | null> {
  return findConflict(failure, {
    resource: path,
    events: ['target.put', 'target.delete'],
  });
}

export function useCatalogue() {
  const { data = [] } = useQuery({
    queryKey: ['services'],
    queryFn: ({ signal }) => client.services({ signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
  return data;
}

/** Those that need nothing but their name. */
export const useServices = () =>
  useCatalogue().filter(({ unsupported, needs_host }) => unsupported === null && !needs_host);

/**
 * Queries about credentials that several pages share, and their invalidation after a change or a retrieval. They never
 * contain values.
 */
import { type Query, useQuery } from '@tanstack/react-query';
import { LeaseholdError } from '../../../../src/client/errors.ts';
import type { Tagged } from '../../../../src/client/leasehold.ts';
import type { CredentialTargets } from '../../../../src/client/types.ts';
import type { EditSubject } from '../../components/edit-conflict.tsx';
import { client } from '../../session/console-client.ts';
import { queries } from '../../session/queries.ts';

const READ_OF_CREDENTIALS = ['credential', 'credentials', 'tree', 'search', 'exposure', 'targets', 'matrix'];

const isOfCredentials = ({ queryKey }: Query): boolean => READ_OF_CREDENTIALS.includes(String(queryKey[0]));

export async function forgetCredentials(): Promise<void> {
  await queries.invalidateQueries({ predicate: isOfCredentials });
}

/** Drops the data of a deleted credential, whose details must not be read again. */
export async function forgetDeleted(path: string): Promise<void> {
  queries.removeQueries({ predicate: (query) => isOfCredentials(query) && query.queryKey[1] === path });
  await forgetCredentials();
}

/** The targets; null if the credential has none. */
export async function readTargets(path: string, signal: AbortSignal): Promise<Tagged<CredentialTargets> | null> {
  try {
    return await client.targets.readTagged(path, { signal });
  } catch (error) {
    if (error instanceof LeaseholdError && error.code === 'NOT_FOUND') return null;
    throw error;
  }
}

export const targetsSubject = (path: string): EditSubject => ({
  what: `The targets of ${path}`,
  kind: 'targets',
  name: path,
});

export function useCatalogue() {
  const { data = [] } = useQuery({
    queryKey: ['services'],
    queryFn: ({ signal }) => client.services({ signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
  return data;
}

/** The supported services that need no customer host. */
export const useServices = () =>
  useCatalogue().filter(({ unsupported, needs_host }) => unsupported === null && !needs_host);

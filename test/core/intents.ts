/** An operation that takes effect elsewhere: its intent, and its result. */

import type { EntryId } from '../../src/core/names.ts';
import { type Context, type Operation, operation, succeeded } from '../../src/core/operation.ts';
import type { EntryDraft } from '../../src/vault/audit/audit-entry.ts';

const spec = (requestId: string) => {
  const context: Context = { auth: { kind: 'admin' }, requestId, remoteAddr: null };
  return { context, permission: 'credential.store', resource: 'prod/key' } as const;
};

export function intent(requestId: string): Operation<EntryId> {
  return operation(spec(requestId), ({ moment, entry }) =>
    succeeded(moment.entryId, entry('allowed', { reason: 'the change begins' })),
  );
}

export function result(requestId: string, completes: EntryId, how: EntryDraft['result']): Operation<null> {
  return operation(spec(requestId), ({ entry }) =>
    succeeded(null, entry(how, { reason: 'the change ended', completes })),
  );
}

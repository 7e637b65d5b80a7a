/** Retries without HTTP: requests with a key, and a vault that loses the outcome of a commit. */
import type { TestContext } from 'node:test';
import type { IdempotencyKey } from '../../src/core/idempotency.ts';
import type { Context } from '../../src/core/operation.ts';
import { StoreError } from '../../src/store/errors.ts';
import { toIdempotency } from '../../src/vault/header-digests.ts';
import type { Vault } from '../../src/vault/vault.ts';
import { admin, openVault, withCommit } from './fixture.ts';

/** The administrator in a new request with a key. `request` distinguishes the requests. */
export function keyed(vault: Vault, key = 'k', request = 'r'): Context {
  const context = admin();
  return {
    ...context,
    idempotency: toIdempotency(vault, context.auth, key as IdempotencyKey, [request]),
  };
}

/** A vault whose next commit, when armed, fails with an unknown outcome: it takes effect, or it does not. */
export async function vaultWithLoss(t: TestContext) {
  let next: 'after' | 'before' | null = null;
  const vault = await openVault(t, {
    inFront: withCommit(async (_batch, commit) => {
      const mishap = next;
      next = null;
      if (mishap === 'before') throw new StoreError('unknown', 'a made-up loss of the connection');
      await commit();
      if (mishap === 'after') throw new StoreError('unknown', 'a made-up loss of the connection');
    }),
  });
  return {
    vault,
    lose: (mishap: 'after' | 'before') => {
      next = mishap;
    },
  };
}

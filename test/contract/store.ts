/**
 * The contract of the store, as `src/store/stored-data.ts` states it, for every store. The test of a store calls
 * `storeContract` with functions that create and open one.
 */
import type { Store } from '../../src/store/port.ts';
import type { Scope } from '../kit/directory.ts';
import { approvalContract } from './approvals.ts';
import { commitContract } from './commit.ts';
import { countContract } from './counts.ts';
import { exposureContract } from './exposures.ts';
import { keptReplyContract } from './idempotency-records.ts';
import { beginningContract } from './initialise.ts';
import { keyContract } from './keys.ts';
import { leaseContract } from './leases.ts';
import { listContract } from './lists.ts';
import { logContract } from './log.ts';
import { headAt, KEY_CHECK, KEYS, T0 } from './rows.ts';
import { streamContract } from './streams.ts';
import { sweepContract } from './sweeping.ts';
import { sweepLeaseContract } from './sweeping-leases.ts';
import { turnContract } from './transactions.ts';

/**
 * Creates a new, empty location that is removed with the scope. The returned function opens the store there, any number
 * of times.
 */
export type NewPlace = (scope: Scope) => Promise<() => Promise<Store>>;

/** The arguments of each part of the contract. */
export interface Subject {
  /** Begins the name of every test. */
  readonly name: string;
  readonly newPlace: NewPlace;
  /** A store with a vault made in it, closed with the scope. */
  newVault(scope: Scope): Promise<Store>;
}

export function storeContract(name: string, newPlace: NewPlace): void {
  const subject: Subject = {
    name,
    newPlace,
    async newVault(scope) {
      const open = await newPlace(scope);
      const store = await open();
      scope.after(() => store.close());
      await store.initialise(KEY_CHECK, headAt(0), T0, KEYS);
      return store;
    },
  };
  beginningContract(subject);
  turnContract(subject);
  commitContract(subject);
  countContract(subject);
  approvalContract(subject);
  keptReplyContract(subject);
  leaseContract(subject);
  listContract(subject);
  logContract(subject);
  streamContract(subject);
  sweepContract(subject);
  sweepLeaseContract(subject);
  exposureContract(subject);
  keyContract(subject);
}

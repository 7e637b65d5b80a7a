/**
 * The vault as the server sees it: locked or open, and read-only if its audit log has lost entries. A locked vault has
 * no keys and no store, and requests to it are rejected with VAULT_LOCKED. Attempts to unlock it are limited.
 */
import type { Context } from '../core/operation.ts';
import { decodeStrictBase64 } from '../crypto/primitives.ts';
import { combineShares, isShareOf, parseShare, type Share } from '../crypto/shares.ts';
import { ApiError, invalidRequest } from '../engine/errors.ts';
import { StartupError } from '../platform/errors.ts';
import { readStoredKeys } from '../store/vault-metadata.ts';
import { acceptRollback } from '../vault/audit/lifecycle.ts';
import type { Secret } from '../vault/credentials/credential.ts';
import { lockVault } from '../vault/keys/key-operations.ts';
import type { KeySlot } from '../vault/keys/keyset.ts';
import type { UnlockableSlot, Unlocking, VaultAccess } from '../vault/ports.ts';
import type { Vault } from '../vault/vault.ts';
import type { GivenSecret, Locked } from './open-keys.ts';
import type { RunningVault } from './running-vault.ts';

const RETRY_INTERVAL_MS = 10_000;

/** Opens the vault with an operator's secret, or, without one, with the unattended slots. */
export type OpenVault = (given: GivenSecret | null, acceptsRollback: boolean) => Promise<RunningVault | Locked>;

export class VaultGate implements VaultAccess {
  readonly #open: OpenVault;
  readonly #log: (line: string) => void;
  #acceptsRollback: boolean;
  #running: RunningVault | null = null;
  #locked: Locked | null = null;
  readonly #attempts: UnlockAttempts;
  #opening: Promise<unknown> = Promise.resolve();
  #retry: NodeJS.Timeout | null = null;
  #isStopped = false;

  /** `acceptsRollback` applies once, when the vault is opened for the first time. */
  constructor(open: OpenVault, acceptsRollback: boolean, log: (line: string) => void) {
    this.#open = open;
    this.#acceptsRollback = acceptsRollback;
    this.#log = log;
    this.#attempts = new UnlockAttempts(log);
  }

  get running(): RunningVault | null {
    return this.#running;
  }

  /** The vault for requests. Each property belongs to the vault that is open at that moment. */
  get vault(): Vault {
    const current = (): Omit<Vault, 'access'> => {
      if (this.#running === null) throw new ApiError('VAULT_LOCKED', 'The vault is locked. Run leasehold unlock.');
      return this.#running.vault;
    };
    return new Proxy({ access: this } as unknown as Vault, {
      get: (target, name) => (name === 'access' ? target.access : Reflect.get(current(), name)),
    });
  }

  /** Opens the vault at startup. It stays locked if only manual slots can open it. @throws StartupError, StoreError */
  async start(): Promise<Locked | null> {
    const opened = await this.#open(null, this.#acceptsRollback);
    return this.#install(opened) ? null : this.#locked;
  }

  #install(opened: RunningVault | Locked): boolean {
    if ('slots' in opened) {
      this.#locked = opened;
      // WHY only then: an unattended slot that does not open now may open later.
      if (opened.problems.length > 0) this.#retryLater();
      return false;
    }
    this.#running = opened;
    this.#locked = null;
    this.#acceptsRollback = false;
    this.#stopRetrying();
    this.#attempts.forgetShares();
    return true;
  }

  #stopRetrying(): void {
    if (this.#retry !== null) clearTimeout(this.#retry);
    this.#retry = null;
  }

  #retryLater(): void {
    if (this.#isStopped) return;
    this.#retry ??= setTimeout(() => {
      this.#retry = null;
      void this.#exclusively(async () => {
        if (this.#running === null) this.#install(await this.#opened(null, 'service.unlock'));
      }).catch((error: unknown) => {
        this.#log(`the vault stays locked: ${describe(error)}`);
        this.#retryLater();
      });
    }, RETRY_INTERVAL_MS).unref();
  }

  async #opened(given: GivenSecret | null, event: 'service.start' | 'service.unlock', accepts = false) {
    const opened = await this.#open(given, accepts || this.#acceptsRollback);
    if ('slots' in opened) return opened;
    try {
      await opened.start(event);
    } catch (error) {
      await opened.close(false);
      throw error;
    }
    return opened;
  }

  #exclusively<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#opening.then(() => {
      if (this.#isStopped) throw new ApiError('UNAVAILABLE', 'The server is shutting down.', 1);
      return work();
    });
    this.#opening = done.catch(() => undefined);
    return done;
  }

  async attendedSlots(): Promise<readonly UnlockableSlot[]> {
    return this.#assertLocked().slots.map(({ name, kind, parameters }: KeySlot) => ({ name, kind, parameters }));
  }

  #assertLocked(): Locked {
    if (this.#running === null && this.#locked !== null) return this.#locked;
    throw new ApiError('INVALID_REQUEST', 'The vault is not locked.');
  }

  unlock(secret: Secret): Promise<Unlocking> {
    return this.#exclusively(async () => {
      const { slots } = this.#assertLocked();
      this.#attempts.assertMayTry();
      const text = secret.reveal();
      const bytes = decodeStrictBase64(text);
      if (bytes?.length === 32) return { status: await this.#tryToOpen(bytes), shares: null };
      const share = parseShare(text);
      if (share === null) {
        const rule = 'must be a share without typing mistakes, or 32 bytes as base64';
        throw this.#attempts.failed(invalidRequest('secret', rule));
      }
      const { given, needed } = this.#attempts.addShare(share, slots);
      const shares = { given: given.length, needed };
      if (given.length < needed) return { status: 'locked', shares };
      return { status: await this.#tryToOpen(await combineShares(given)), shares };
    });
  }

  /** @throws INVALID_REQUEST for a wrong secret; UNAVAILABLE if the vault cannot be opened for another reason */
  async #tryToOpen(secret: Uint8Array): Promise<'ok' | 'rolled_back'> {
    let opened: RunningVault | Locked;
    try {
      opened = await this.#opened(secret, 'service.unlock');
    } catch (error) {
      this.#log(`the vault could not be unlocked: ${describe(error)}`);
      if (!(error instanceof StartupError)) throw error;
      throw new ApiError('UNAVAILABLE', 'The vault cannot be opened. The server log has the cause.', 1);
    }
    if ('slots' in opened) throw this.#attempts.failed(invalidRequest('secret', 'opens no key slot of this vault'));
    this.#install(opened);
    return opened.loss === null ? 'ok' : 'rolled_back';
  }

  lock(context: Context): Promise<void> {
    return this.#exclusively(async () => {
      const running = this.#assertOpen();
      let failure: unknown = null;
      try {
        // ORDER: recorded before it takes effect.
        await running.vault.ledger.submit(lockVault(context));
      } catch (error) {
        failure = error;
      }
      // WHY even after a failure: the reason to lock does not wait until the storage works again.
      await this.#close(running);
      if (failure === null) return;
      this.#log(`the vault was locked, which the audit log does not record: ${describe(failure)}`);
      throw new ApiError('UNAVAILABLE', 'The vault was locked, but the audit log could not record that.', 1);
    });
  }

  hasFailed(): boolean {
    return this.#running?.vault.ledger.state === 'failed';
  }

  #assertOpen(): RunningVault {
    if (this.#running === null) throw new ApiError('VAULT_LOCKED', 'The vault is locked.');
    return this.#running;
  }

  async #close(running: RunningVault): Promise<void> {
    const read = running.vault.store.run(readStoredKeys(), 'urgent');
    this.#running = null;
    try {
      this.#locked = { slots: (await read).slots, problems: [] };
    } catch (error) {
      // A slot's secret still opens the vault; only the list of slots is missing.
      this.#locked = { slots: [], problems: [describe(error)] };
    }
    this.#stopRetrying();
    await running.close(false);
  }

  loss(): string | null {
    const { loss, vault } = this.#assertOpen();
    const found = [loss, vault.ledger.memory.unproven].filter((line) => line !== null);
    return found.length === 0 ? null : found.join(' ');
  }

  acceptRollback(context: Context): Promise<void> {
    return this.#exclusively(async () => {
      const running = this.#assertOpen();
      const loss = this.loss();
      if (loss === null) return;
      // WHY the key: the vault needs no other unlocking, so the acceptance applies to this opening alone.
      const { slotKey } = running.vault.keys;
      await this.#close(running);
      try {
        const opened = await this.#opened(slotKey, 'service.start', true);
        this.#install(opened);
        const { ledger } = this.#assertOpen().vault;
        const record = () => ledger.submit(acceptRollback(context, loss));
        // The vault is open, so a failed batch is tried again.
        await record().catch(record);
      } catch (error) {
        this.#log(`the vault could not be opened again: ${describe(error)}`);
        if (this.#running === null) this.#retryLater();
        throw new ApiError('UNAVAILABLE', 'The vault cannot be opened. The server log has the cause.', 1);
      }
    });
  }

  /** Resolves when a change of state in progress is complete. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#stopRetrying();
    await this.#opening;
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : 'unknown error';
}

/** Given shares are dropped after this time without another one. */
const SHARES_TTL_MS = 10 * 60_000;
const MAX_FAILURES = 10;
const FAILURES_WINDOW_MS = 60_000;

interface GivenShares {
  readonly given: readonly Share[];
  readonly needed: number;
}

export class UnlockAttempts {
  readonly #log: (line: string) => void;
  #shares = new Map<string, Map<number, Share>>();
  #sharesExpire: NodeJS.Timeout | null = null;
  #failures: number[] = [];

  constructor(log: (line: string) => void) {
    this.#log = log;
  }

  /** @throws INVALID_REQUEST for a share of none of the slots, which leaves the other shares valid */
  addShare(share: Share, slots: readonly KeySlot[]): GivenShares {
    const { group } = share;
    const slot = slots.find(({ parameters }) => parameters['group'] === group);
    if (slot === undefined || !isShareOf(share, slot.parameters))
      throw this.failed(invalidRequest('secret', 'is a share of another vault, or of a slot that was removed'));
    const given = this.#shares.get(group) ?? new Map<number, Share>();
    this.#shares.set(group, given.set(share.index, share));
    this.#sharesExpire?.close();
    this.#sharesExpire = setTimeout(() => this.forgetShares(), SHARES_TTL_MS).unref();
    const needed = Number(slot.parameters['threshold']);
    if (given.size >= needed) this.#shares.delete(group);
    return { given: [...given.values()], needed };
  }

  forgetShares(): void {
    this.#shares = new Map();
    this.#sharesExpire?.close();
    this.#sharesExpire = null;
  }

  /** @throws RATE_LIMITED */
  assertMayTry(): void {
    const now = performance.now();
    this.#failures = this.#failures.filter((at) => now - at < FAILURES_WINDOW_MS);
    if (this.#failures.length < MAX_FAILURES) return;
    throw new ApiError('RATE_LIMITED', 'Too many wrong secrets. Wait a minute.', FAILURES_WINDOW_MS / 1000);
  }

  failed(error: ApiError): ApiError {
    this.#failures.push(performance.now());
    this.#log(`a wrong secret was given to unlock the vault (${this.#failures.length} in a minute)`);
    return error;
  }
}

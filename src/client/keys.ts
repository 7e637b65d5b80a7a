/** Calls on key slots, on the rotation of keys, and on a locked vault. SOURCE: docs/keys.md. */
import type { Secret } from '../vault/credentials/credential.ts';
import { type CallOptions, Calls, toSegment } from './api-client.ts';
import type {
  AttendedSlot,
  Health,
  KeySlot,
  KeySlotRequest,
  KeySlotTest,
  RotatedKey,
  RotateKeyRequest,
  UnlockProgress,
} from './types.ts';

const SLOTS = '/api/v1/key/slots';
const UNLOCK = '/api/v1/unlock';
const addressOf = (name: string): string => `${SLOTS}/${toSegment(name, 'name')}`;

export class Keys extends Calls {
  slots(options: CallOptions = {}): Promise<readonly KeySlot[]> {
    return this.api.read<KeySlot[]>(SLOTS, {}, options);
  }

  addSlot(body: KeySlotRequest, options: CallOptions = {}): Promise<KeySlot> {
    return this.api.post(SLOTS, body, options, 'never');
  }

  removeSlot(name: string, options: CallOptions = {}): Promise<void> {
    return this.api.remove(addressOf(name), options, 'name');
  }

  /** `publicKey`: for a manual slot, computed from its secret. */
  testSlot(name: string, publicKey: string | null, options: CallOptions = {}): Promise<KeySlotTest> {
    const body = publicKey === null ? {} : { public_key: publicKey };
    return this.api.post(`${addressOf(name)}/test`, body, options, 'never');
  }

  rotate(key: NonNullable<RotateKeyRequest['key']>, options: CallOptions = {}): Promise<RotatedKey> {
    return this.api.post('/api/v1/key/rotate', { key }, options, 'never');
  }

  /** Every later call fails with VAULT_LOCKED. */
  lock(options: CallOptions = {}): Promise<Health> {
    return this.api.post('/api/v1/lock', {}, options, 'never');
  }

  /** The slots with which an operator can unlock a locked vault. Only from the same machine. */
  attendedSlots({ signal }: CallOptions = {}): Promise<readonly AttendedSlot[]> {
    const spec = { method: 'GET', path: UNLOCK, retry: 'never', signal } as const;
    return this.api.ask<AttendedSlot[]>(spec).then(({ data }) => data);
  }

  /** `secret`: base64 of a slot's secret, or a share. */
  unlock(secret: Secret, options: CallOptions = {}): Promise<UnlockProgress> {
    return this.api.post(UNLOCK, { secret: secret.reveal() }, options, 'never');
  }
}

/** Calls on key slots, on the rotation of keys, and on a locked vault. SOURCE: docs/keys.md. */
import type { Secret } from '../core/secret.ts';
import { type ApiClient, type CallOptions, toSegment } from './api-client.ts';
import { type Decoder, decodeHealth, listOf, object } from './decoders.ts';
import { LeaseholdError } from './errors.ts';
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

const decodeParameters: Decoder<KeySlot['parameters']> = (body) => {
  const values = typeof body === 'object' && body !== null ? Object.values(body) : [null];
  if (values.every((value) => typeof value === 'string' || Number.isSafeInteger(value)))
    return body as KeySlot['parameters'];
  throw new LeaseholdError('INVALID_RESPONSE', 'parameters must be texts and numbers');
};
const slot = { name: 'text', kind: 'text', parameters: decodeParameters } as const;
const decodeSlot = object<KeySlot>({ ...slot, created_at: 'text' });
const decodeAttended = object<AttendedSlot>(slot);
const decodeTest = object<KeySlotTest>({ opens: 'boolean', problem: 'text or null' });
const decodeRotated = object<RotatedKey>({ key: 'text' });
const decodeProgress = object<UnlockProgress>({
  status: 'text',
  shares_given: 'integer or null',
  shares_needed: 'integer or null',
});

export class Keys {
  readonly #api: ApiClient;

  constructor(api: ApiClient) {
    this.#api = api;
  }

  slots(options: CallOptions = {}): Promise<readonly KeySlot[]> {
    return this.#api.read(SLOTS, {}, listOf(decodeSlot), options);
  }

  addSlot(body: KeySlotRequest, options: CallOptions = {}): Promise<KeySlot> {
    return this.#post(SLOTS, body, decodeSlot, options);
  }

  removeSlot(name: string, options: CallOptions = {}): Promise<void> {
    return this.#api.remove(addressOf(name), options, 'name');
  }

  /** `publicKey`: of an attended slot, computed from its secret. */
  testSlot(name: string, publicKey: string | null, options: CallOptions = {}): Promise<KeySlotTest> {
    const body = publicKey === null ? {} : { public_key: publicKey };
    return this.#post(`${addressOf(name)}/test`, body, decodeTest, options);
  }

  rotate(key: NonNullable<RotateKeyRequest['key']>, options: CallOptions = {}): Promise<RotatedKey> {
    return this.#post('/api/v1/key/rotate', { key }, decodeRotated, options);
  }

  /** Every later call fails with VAULT_LOCKED. */
  lock(options: CallOptions = {}): Promise<Health> {
    return this.#post('/api/v1/lock', {}, decodeHealth, options);
  }

  /** The slots with which a person can unlock a locked vault; from the same machine only. */
  attendedSlots({ signal }: CallOptions = {}): Promise<readonly AttendedSlot[]> {
    const spec = { method: 'GET', path: UNLOCK, retry: 'never', signal } as const;
    return this.#api.ask(spec, listOf(decodeAttended)).then(({ data }) => data);
  }

  /** `secret`: base64 of a slot's secret, or a share. */
  unlock(secret: Secret, options: CallOptions = {}): Promise<UnlockProgress> {
    return this.#post(UNLOCK, { secret: secret.reveal() }, decodeProgress, options);
  }

  async #post<T>(path: string, body: object, decode: Decoder<T>, { signal }: CallOptions): Promise<T> {
    return (await this.#api.ask({ method: 'POST', path, body, retry: 'never', signal }, decode)).data;
  }
}

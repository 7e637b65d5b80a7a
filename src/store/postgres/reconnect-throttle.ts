/**
 * Opens connections. After a failure it rejects attempts with the same error for a short time, so that callers do not
 * flood a server that is recovering.
 */
import type { PostgresAddress } from './address.ts';
import { Connection } from './connection.ts';
import type { Purpose } from './driver.ts';

const RETRY_INTERVAL_MS = 200;

export class ReconnectThrottle {
  readonly #address: PostgresAddress;
  #refusedUntil = 0;
  #failure: unknown = null;

  constructor(address: PostgresAddress) {
    this.#address = address;
  }

  /** @throws StoreError */
  async open(purpose: Purpose): Promise<Connection> {
    if (performance.now() < this.#refusedUntil) throw this.#failure;
    try {
      return await Connection.open(this.#address, purpose);
    } catch (error) {
      this.#failure = error;
      this.#refusedUntil = performance.now() + RETRY_INTERVAL_MS;
      throw error;
    }
  }
}

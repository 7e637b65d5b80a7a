/**
 * The agent that the server acts as, as the service knows it. The server starts without the service, which may start later or be away
 * for a while; then the first call finds out.
 */

import { LeaseholdError } from '../client/errors.ts';
import type { Leasehold } from '../client/leasehold.ts';
import { isTransient } from '../client/retries.ts';
import { UsageError } from '../platform/errors.ts';
import { ToolError } from './errors.ts';

/** Clients give a server a minute or less to start. */
const START_TIMEOUT_MS = 10_000;
const NOT_AN_AGENT = 'the server must act as an agent, not as the administrator: give an agent and its key file';

export class ActingAgent {
  readonly #client: Leasehold;
  #name: string | null = null;

  constructor(client: Leasehold) {
    this.#client = client;
  }

  /** At the start. Null where the service does not answer in time. @throws UsageError, LeaseholdError */
  async find(log: (line: string) => void): Promise<string | null> {
    const signal = AbortSignal.timeout(START_TIMEOUT_MS);
    try {
      return await this.#read(signal);
    } catch (error) {
      if (error instanceof ToolError) throw new UsageError(error.message);
      if (!isTransient(error) && error !== signal.reason) throw error;
      log('the service does not answer; tools answer UNAVAILABLE until it does');
      return null;
    }
  }

  /** @throws Refusal, LeaseholdError */
  async name(): Promise<string> {
    return this.#name ?? this.#read();
  }

  async #read(signal?: AbortSignal): Promise<string> {
    try {
      const { agent_name } = await this.#client.readSession(signal === undefined ? {} : { signal });
      this.#name = agent_name;
      return agent_name;
    } catch (error) {
      // The administrator has no session.
      if (!(error instanceof LeaseholdError) || error.status !== 404) throw error;
      throw new ToolError('NOT_ALLOWED', NOT_AN_AGENT);
    }
  }
}

/** The agent that the MCP server acts as. If the vault is unreachable at startup, the first call determines it. */

import { LeaseholdError } from '../client/errors.ts';
import type { Leasehold } from '../client/leasehold.ts';
import { isTransient } from '../client/retries.ts';
import { UsageError } from '../platform/errors.ts';
import { ToolError } from './tool.ts';

/** WHY short: clients wait at most a minute for a server to start. */
const START_TIMEOUT_MS = 10_000;
const NOT_AN_AGENT = 'the server must act as an agent, not as the administrator: give an agent and its key file';

export class ActingAgent {
  readonly #client: Leasehold;
  #name: string | null = null;

  constructor(client: Leasehold) {
    this.#client = client;
  }

  /**
   * Determines the agent at startup; resolves to null when the vault does not respond in time. @throws UsageError,
   * LeaseholdError
   */
  async find(log: (line: string) => void): Promise<string | null> {
    const signal = AbortSignal.timeout(START_TIMEOUT_MS);
    try {
      return await this.#read(signal);
    } catch (error) {
      if (error instanceof ToolError) throw new UsageError(error.message);
      if (!isTransient(error) && error !== signal.reason) throw error;
      log('the vault does not respond; tools return UNAVAILABLE until it does');
      return null;
    }
  }

  /** @throws ToolError, LeaseholdError */
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

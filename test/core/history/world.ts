/**
 * Runs histories through `src/core`, in batches as the ledger does, with arrays instead of a database. The outcome of
 * every command is kept for the claims.
 */

import { BatchState, type VaultSettings } from '../../../src/core/batch-state.ts';
import type { Change } from '../../../src/core/change.ts';
import { ControlState } from '../../../src/core/control.ts';
import { toApiError } from '../../../src/core/denials.ts';
import type { AuthContext } from '../../../src/core/identity.ts';
import type { AgentId, AgentName, ChallengeId, EntryId, LeaseId, TokenHash } from '../../../src/core/names.ts';
import type { Operation, Outcome } from '../../../src/core/operation.ts';
import type { EntryDraft } from '../../../src/vault/audit/audit-entry.ts';
import { CHALLENGE_LIFE_MS } from '../../../src/vault/sessions/session-operations.ts';
import type { Command, History, Turn, Wait } from './commands.ts';
import { observe } from './observing.ts';
import { toOperation } from './operations.ts';
import { Shelf } from './shelf.ts';

export interface Challenge {
  readonly id: ChallengeId;
  readonly expiresAt: number;
  /** The agent that had the name when it was issued; null for a name without an agent. */
  readonly boundTo: AgentId | null;
}

/** A command, and the objects to which it refers. */
export interface Ask {
  readonly command: Command;
  readonly now: number;
  readonly auth: AuthContext;
  readonly lease: LeaseId;
  /** An id that nothing has yet, for whatever the command makes. */
  readonly fresh: string;
  readonly challenge: Challenge;
  /** The agent whose key verified the signature before the batch, and the result. */
  readonly checked: { readonly agentId: AgentId; readonly isValid: boolean } | null;
}

export interface Happening {
  readonly ask: Ask;
  readonly code: string;
  /** The message of the rejection. */
  readonly message: string | null;
  readonly reply: unknown;
  readonly entry: EntryDraft | null;
  readonly changes: readonly Change[];
}

const START = Date.UTC(2026, 0, 1);
const STRANGER = 'hash-of-nothing' as TokenHash;
const SEVEN_DAYS = 7 * 24 * 3600 * 1000;

export class World {
  readonly control = new ControlState([], []);
  readonly shelf = new Shelf();
  readonly happened: Happening[] = [];
  /** The tokens of all sessions that were ever opened, the newest first. */
  readonly tokens: Extract<AuthContext, { kind: 'session' }>[] = [];
  readonly #challenges: Challenge[] = [];
  readonly #settings: VaultSettings;
  #seq = 0;
  #ids = 0;
  now = START;

  constructor(settings: VaultSettings) {
    this.#settings = settings;
  }

  /** Decides a command as the next would be, and changes nothing. */
  peek(command: Command): Happening {
    return this.#decide([this.#resolve(command)], false)[0] as Happening;
  }

  /** Advances the time and decides the commands, in as many batches as the queue would form. */
  play({ wait, commands }: Turn): Happening[] {
    this.now = this.#after(wait);
    const played: Happening[] = [];
    let waiting: Ask[] = [];
    const take = () => {
      played.push(...this.#decide(waiting, true));
      waiting = [];
    };
    for (const command of commands) {
      if (command.kind === 'challenge') {
        this.#issueChallenge(command.name);
        continue;
      }
      waiting.push(this.#resolve(command));
      // A list is read when its batch is on disk.
      if (command.kind === 'list' || command.kind === 'listLeases') take();
    }
    take();
    this.happened.push(...played);
    return played;
  }

  #decide(asks: readonly Ask[], isKept: boolean): Happening[] {
    const operations = asks.map((ask): Operation<unknown> => toOperation(ask));
    const workspace = new BatchState(this.control, this.shelf.load(operations), this.#settings);
    let seq = this.#seq;
    const outcomes = operations.map((operation, at): Outcome<unknown> => {
      const newId = (): string => asks[at]?.fresh ?? '';
      const outcome = operation.decide(workspace, {
        now: this.now,
        seq: seq + 1,
        entryId: `entry ${seq + 1}` as EntryId,
        newId,
      });
      if (isKept) for (const change of outcome.changes) workspace.apply(change);
      if (outcome.entry !== null) seq += 1;
      return outcome;
    });
    if (isKept) {
      this.#seq = seq;
      for (const change of outcomes.flatMap(({ changes }) => changes)) this.shelf.apply(change);
    }
    return asks.map((ask, at) => {
      const outcome = outcomes[at] as Outcome<unknown>;
      const { response, entry, changes } = outcome;
      const error = 'denial' in response ? toApiError(response.denial) : null;
      const code = error?.code ?? 'OK';
      if (isKept && code === 'OK') this.#remember(ask);
      return { ask, code, message: error?.message ?? null, reply: observe(ask, outcome, this.shelf), entry, changes };
    });
  }

  #remember({ command, fresh }: Ask): void {
    if (command.kind !== 'verify') return;
    this.tokens.unshift({ kind: 'session', tokenHash: fresh as TokenHash, agentName: command.name as AgentName });
  }

  #resolve(command: Command): Ask {
    const fresh = this.#freshId();
    const challenge = this.#challenges['challenge' in command ? command.challenge : 0];
    const auth = this.#auth('by' in command ? command.by : 1);
    const agent = 'name' in command ? this.control.agentByName(command.name as AgentName) : null;
    const isValid = command.kind === 'verify' && command.isSigned && challenge?.boundTo === agent?.id;
    return {
      command,
      now: this.now,
      auth,
      lease: this.#lease('lease' in command ? command.lease : 0, auth) ?? (this.#freshId() as LeaseId),
      fresh,
      challenge: challenge ?? { id: this.#freshId() as ChallengeId, expiresAt: this.now + 1, boundTo: null },
      checked: agent === null ? null : { agentId: agent.id, isValid },
    };
  }

  #auth(by: number): AuthContext {
    if (by === 0) return { kind: 'admin' };
    const stranger: AuthContext = { kind: 'session', tokenHash: STRANGER, agentName: 'a' as AgentName };
    if (by === 1) return stranger;
    const alive = this.tokens.filter((token) => this.#isAlive(token));
    const [some, at] = by < 5 && alive.length > 0 ? [alive, by - 2] : [this.tokens, Math.abs(by - 5)];
    return some[at % Math.max(1, some.length)] ?? stranger;
  }

  #isAlive(auth: AuthContext & { kind: 'session' }): boolean {
    const session = this.shelf.sessions.find(({ tokenHash }) => tokenHash === auth.tokenHash);
    return session !== undefined && this.now < session.expiresAt && this.control.agentById(session.agentId) !== null;
  }

  #lease(lease: number, auth: AuthContext): LeaseId | undefined {
    const all = this.shelf.leases().reverse();
    // Grouped by name, so that an agent that was registered again also tries the leases of its predecessor.
    const name: string = auth.kind === 'admin' ? 'admin' : auth.agentName;
    const own = all.filter(({ agentName }) => agentName === name);
    const some = lease < 3 && own.length > 0 ? own : all;
    return some[lease % Math.max(1, some.length)]?.id;
  }

  #issueChallenge(name: string): void {
    const boundTo = this.control.agentByName(name as AgentName)?.id ?? null;
    const id = this.#freshId() as ChallengeId;
    this.#challenges.unshift({ id, expiresAt: this.now + CHALLENGE_LIFE_MS, boundTo });
  }

  #after(wait: Wait): number {
    if ('ms' in wait) return this.now + wait.ms;
    const leases = this.shelf.leases().flatMap(({ expiresAt }) => [expiresAt, expiresAt + SEVEN_DAYS]);
    const others = [...this.shelf.sessions, ...this.#challenges].map(({ expiresAt }) => expiresAt);
    const ends = [...leases, ...others].filter((end) => end >= this.now).sort((a, b) => a - b);
    return Math.max(this.now, (ends[wait.end] ?? this.now) + wait.delta);
  }

  #freshId(): string {
    this.#ids += 1;
    return `00000000-0000-7000-8000-${String(this.#ids).padStart(12, '0')}`;
  }
}

export function play({ turns, ...settings }: History): World {
  const world = new World(settings);
  for (const turn of turns) world.play(turn);
  return world;
}

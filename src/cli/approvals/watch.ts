/** `leasehold approve` without an id: shows each request as it arrives, and reads one key as its answer. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Approvals, groupApprovals } from '../../client/approvals.ts';
import { LeaseholdError } from '../../client/errors.ts';
import type { Leasehold } from '../../client/leasehold.ts';
import { isTransient } from '../../client/retries.ts';
import type { Approval, ListedApproval } from '../../client/types.ts';
import { withoutNulls } from '../../flags/flag.ts';
import { inParallel } from '../../platform/waiting.ts';
import { printNotice, type Terminal } from '../terminal.ts';
import { approvalCard, promptFor } from './card.ts';
import { KeyPresses } from './key-presses.ts';

const POLL_INTERVAL_MS = 1000;
const IDLE_PROMPT = 'Nothing waits for an answer. New requests are shown here.  [q] quit ';

export interface WatchOptions {
  readonly terminal: Terminal;
  readonly vault: Leasehold;
  readonly signal: AbortSignal;
  /** Resolves to null without a reason. */
  askReason(): Promise<string | null>;
}

type Group = readonly [ListedApproval, ...ListedApproval[]];

export class ApprovalWatch {
  readonly #options: WatchOptions;
  readonly #keys: KeyPresses;
  readonly #done = new Set<string>();
  #aheadMs = 0;
  #self = '';
  #isReachable = true;

  private constructor(options: WatchOptions, keys: KeyPresses) {
    this.#options = options;
    this.#keys = keys;
  }

  /** Resolves when the operator quits. @throws LeaseholdError, UsageError without a terminal */
  static async run(options: WatchOptions): Promise<void> {
    using keys = new KeyPresses(options.terminal);
    const signal = AbortSignal.any([options.signal, keys.interrupted]);
    const watch = new ApprovalWatch({ ...options, signal }, keys);
    await watch.#prepare();
    while (await watch.#next());
  }

  async #prepare(): Promise<void> {
    const { vault, signal } = this.#options;
    this.#aheadMs = -(await vault.clockDifference({ signal }));
    this.#self = await readOwnName(vault, signal);
  }

  async #next(): Promise<boolean> {
    const [group] = await this.#open();
    if (group !== undefined) return this.#answer(group);
    const key = await this.#askWhile('', IDLE_PROMPT, ['q'], async () => (await this.#open()).length > 0);
    return key !== 'q';
  }

  async #open(): Promise<readonly Group[]> {
    const { vault, signal } = this.#options;
    const pending = await Array.fromAsync(vault.approvals.listAll({ status: 'pending' }, { signal }));
    const isOpen = ({ approval_id, approvals }: ListedApproval): boolean =>
      !this.#done.has(approval_id) && !approvals.some(({ operator }) => operator === this.#self);
    return groupApprovals(pending.filter(isOpen));
  }

  async #answer(group: Group): Promise<boolean> {
    const { vault, terminal, signal } = this.#options;
    const read = await Promise.all(group.map(({ approval_id: id }) => vault.approvals.read(id, { signal })));
    const [first, ...others] = read.filter(({ status }) => status === 'pending');
    if (first === undefined) return true;
    const shown: readonly [Approval, ...Approval[]] = [first, ...others];
    const now = Date.now() + this.#aheadMs;
    const text = `${approvalCard(shown, { columns: terminal.stderr.columns ?? 80, now })}\n`;
    const { prompt, allowed } = promptFor(shown, ['d', 's', 'q']);
    const key = await this.#askWhile(text, prompt, allowed, () => this.#hasEnded(shown));
    if (key === 'q') return false;
    if (key === null) printNotice(terminal, await this.#describeEnd(first));
    const answer = key === 'a' || key === 'd' ? await this.#toAnswer(key) : null;
    if (answer !== null) {
      const sentences = await answerAll(vault.approvals, shown, answer, signal);
      for (const [sentence, count] of sentences) {
        printNotice(terminal, count === 1 ? sentence : `${sentence} (${count} requests)`);
      }
    }
    for (const { approval_id } of shown) this.#done.add(approval_id);
    return true;
  }

  async #toAnswer(key: 'a' | 'd'): Promise<GivenAnswer> {
    if (key === 'a') return { isApproved: true, reason: null };
    return { isApproved: false, reason: await this.#keys.suspend(() => this.#options.askReason()) };
  }

  async #hasEnded(group: readonly Approval[]): Promise<boolean> {
    const { vault, signal } = this.#options;
    for (const { approval_id: id } of group) {
      if ((await vault.approvals.read(id, { signal })).status === 'pending') return false;
    }
    return true;
  }

  async #describeEnd({ approval_id: id }: Approval): Promise<string> {
    const { vault, signal } = this.#options;
    const { status, answered_by: by } = await vault.approvals.read(id, { signal });
    if (status === 'timed_out') return 'The request timed out.';
    return `The request was ${status}${by === null ? '' : ` by ${by}`}.`;
  }

  /** Resolves to the key, or to null once `isOver` is true. */
  async #askWhile(
    text: string,
    prompt: string,
    keys: readonly string[],
    isOver: () => Promise<boolean>,
  ): Promise<string | null> {
    const ended = new AbortController();
    const signal = AbortSignal.any([this.#options.signal, ended.signal]);
    const look = async (): Promise<void> => {
      do await sleep(POLL_INTERVAL_MS, undefined, { signal });
      while (!(await this.#poll(isOver)));
    };
    let isEnd = false;
    void look().then(
      () => {
        isEnd = true;
        ended.abort();
      },
      (error: unknown) => ended.abort(error),
    );
    try {
      return await this.#keys.ask(text, prompt, keys, signal);
    } catch (error) {
      if (isEnd) return null;
      throw error;
    } finally {
      ended.abort();
    }
  }

  /** Polls once. A server that does not respond is polled again. */
  async #poll(isOver: () => Promise<boolean>): Promise<boolean> {
    try {
      const result = await isOver();
      this.#isReachable = true;
      return result;
    } catch (error) {
      if (!isTransient(error)) throw error;
      const { terminal } = this.#options;
      if (this.#isReachable) terminal.stderr.write('\n');
      if (this.#isReachable) printNotice(terminal, `${error.message}; trying again`);
      this.#isReachable = false;
      return false;
    }
  }
}

/** The operator's own name; empty for the administrator, who has no session. */
async function readOwnName(vault: Leasehold, signal: AbortSignal): Promise<string> {
  try {
    return (await vault.readSession({ signal })).agent_name;
  } catch (error) {
    if (error instanceof LeaseholdError && error.status === 404) return '';
    throw error;
  }
}

const MAX_CONCURRENT = 4;

export interface GivenAnswer {
  readonly isApproved: boolean;
  readonly reason: string | null;
}

export function sendAnswer(
  approvals: Approvals,
  { approval_id, nonce }: ListedApproval,
  { isApproved, reason }: GivenAnswer,
  signal: AbortSignal,
): Promise<ListedApproval> {
  if (isApproved) return approvals.approve(approval_id, nonce, { signal });
  return approvals.deny(approval_id, { nonce, ...withoutNulls({ reason }) }, { signal });
}

export function describeAnswer({ status, approvals, quorum }: ListedApproval): string {
  if (status === 'denied') return 'Denied.';
  if (status === 'approved') return 'Approved: the request passes.';
  return `Approved by ${approvals.length} of ${quorum}: it passes when all of them have approved it.`;
}

/** Errors about one request. The other requests of the group are still answered. */
const SINGLE_REQUEST_ERRORS: ReadonlySet<string> = new Set([
  'APPROVAL_ENDED',
  'ACCESS_DENIED',
  'ALREADY_EXISTS',
  'NOT_FOUND',
]);

/** Resolves to the different sentences, each with its count. @throws LeaseholdError that is not about one request */
async function answerAll(
  approvals: Approvals,
  group: readonly Approval[],
  answer: GivenAnswer,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, number>> {
  const sentences = new Map<string, number>();
  await inParallel(group, MAX_CONCURRENT, async (approval) => {
    const sentence = await sendAnswer(approvals, approval, answer, signal).then(describeAnswer, (error: unknown) => {
      if (error instanceof LeaseholdError && SINGLE_REQUEST_ERRORS.has(error.code)) return error.message;
      throw error;
    });
    sentences.set(sentence, (sentences.get(sentence) ?? 0) + 1);
  });
  return sentences;
}

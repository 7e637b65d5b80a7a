/**
 * The journal of the crash test's clients: every request that leaves an audit entry, with its response if one arrived.
 * A call without a response was in flight when the service was killed: it took effect completely or not at all.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { TestResponse } from '../kit/client.ts';
import { until } from '../kit/processes.ts';

/** Only a hang reaches this limit. */
const ANSWERED_WITHIN_MS = 120_000;

export interface Intent {
  /** The entry that the call leaves. */
  readonly event: string;
  readonly agentName: string;
  readonly resource: string;
  /** The call's values, for the replay: the log holds none. */
  readonly value?: string;
  readonly type?: string;
  readonly description?: string;
  readonly resources?: readonly string[];
  readonly path?: string;
  readonly token?: string;
  readonly proof?: Readonly<Record<string, string>>;
}

export interface Call extends Intent {
  answer: TestResponse | null;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  /** Time on the system's monotonic clock, which other processes share. */
  readonly sentAtNs: bigint;
  answeredAtNs: bigint | null;
  /** Set for an error after which the outcome is unknown. */
  refusedAs: string | null;
}

export class Journal {
  readonly #mayRefuse: boolean;
  #calls: Call[] = [];

  /** `mayRefuse`: a 503 leaves the outcome as unknown as a missing response. */
  constructor({ mayRefuse = false } = {}) {
    this.#mayRefuse = mayRefuse;
  }

  /** Resolves to the response, or to null if the service ended before it was complete. */
  async send(intent: Intent, request: () => Promise<TestResponse>): Promise<TestResponse | null> {
    const sentAtNs = process.hrtime.bigint();
    const call: Call = {
      ...intent,
      answer: null,
      startedAt: Date.now(),
      sentAtNs,
      answeredAtNs: null,
      refusedAs: null,
    };
    this.#calls.push(call);
    const answer = await this.ask(request, (requestId) => {
      call.refusedAs = requestId;
    });
    if (answer !== null && (answer.status >= 500 || answer.status === 400)) {
      throw new Error(`${intent.event} on ${intent.resource} got ${answer.status}: ${answer.text}`);
    }
    call.answer = answer;
    if (answer !== null) call.answeredAtNs = process.hrtime.bigint();
    return answer;
  }

  /** Resolves after the time and at least that many responses, so that the machine's speed does not matter. */
  async untilLoaded(ms: number, leastAnswered: number): Promise<void> {
    await sleep(ms);
    const isLoaded = () => this.#calls.filter(({ answer }) => answer !== null).length > leastAnswered;
    await until(isLoaded, ANSWERED_WITHIN_MS, () => 'the load gets no responses');
  }

  /** The same for a call that leaves no entry. */
  async ask(
    request: () => Promise<TestResponse>,
    onRefusal: (requestId: string | null) => void = () => {},
  ): Promise<TestResponse | null> {
    const answer = await unlessGone(request());
    if (!this.#mayRefuse || answer?.status !== 503) return answer;
    onRefusal(answer.headers.get('x-request-id'));
    if ('data' in answer.body) throw new Error(`rejected with data: ${Object.keys(answer.body.data)}`);
    return null;
  }

  /** The calls since the last call of this method. */
  take(): Call[] {
    return this.#calls.splice(0);
  }
}

/** Null if the connection broke, or could not be made. */
async function unlessGone<T>(answer: Promise<T>): Promise<T | null> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof Error && 'code' in error && /^(?:ECONN|EPIPE)/.test(String(error.code))) return null;
    throw error;
  }
}

/** One brokered request on the server's side: the head, the body and the result from the broker's process. */
import { Readable } from 'node:stream';
import { drained } from '../platform/waiting.ts';
import type { ChannelStream } from './channel-stream.ts';
import {
  type BrokerHead,
  type FinalMessage,
  type HeaderPairs,
  toFinalMessage,
  toHead,
  type UseResult,
} from './protocol.ts';

export class BrokerUse {
  /** Rejects only if the signal was aborted before the head, with its reason. */
  readonly head: Promise<BrokerHead>;
  /**
   * The redacted body; for an upgrade, the upstream's data. Fails if the response breaks off. Destroying it aborts the
   * request. It must be read or destroyed; otherwise the request never ends.
   */
  readonly body: Readable;
  /** Resolves when the body has closed; never rejects. */
  readonly result: Promise<UseResult>;
  readonly #stream: ChannelStream | null;
  #head: BrokerHead | null = null;
  #bytesIn = 0;

  /** `stream`: null if no process could be started. `body`: null without one. */
  constructor(stream: ChannelStream | null, body: Readable | null, signal?: AbortSignal) {
    this.#stream = stream;
    this.body = stream ?? new Readable().destroy();
    const closed = Promise.withResolvers<UseResult>();
    this.result = closed.promise;
    this.body.on('close', () => closed.resolve(this.#result()));
    this.head = stream === null ? Promise.resolve({ kind: 'error', failure: 'broker' }) : this.#start(stream, signal);
    this.head.catch(() => undefined);
    if (stream !== null) this.#send(stream, body).catch(() => stream.destroy());
  }

  /** The upstream's trailers, complete when the body has ended. */
  get trailers(): HeaderPairs {
    return this.#final?.trailers ?? [];
  }

  get #final(): FinalMessage | null {
    return toFinalMessage(this.#stream?.endMessage);
  }

  #start(stream: ChannelStream, signal: AbortSignal | undefined): Promise<BrokerHead> {
    const { promise, resolve, reject } = Promise.withResolvers<BrokerHead>();
    const cut = (): void => void stream.destroy();
    stream.once('head', (message: unknown) => {
      const head = toHead(message);
      if (head === null) {
        stream.lose();
        return;
      }
      this.#head = head;
      // An error is followed by an empty body.
      if (head.kind === 'error') stream.resume();
      resolve(head);
    });
    // A response can be complete before the request is. The rest of the request is not sent.
    stream.once('end', () => {
      if (!stream.writableFinished) stream.destroy();
    });
    stream.once('close', () => {
      signal?.removeEventListener('abort', cut);
      if (signal?.aborted === true) reject(signal.reason);
      else resolve({ kind: 'error', failure: 'broker' });
    });
    if (signal?.aborted === true) cut();
    else signal?.addEventListener('abort', cut, { once: true });
    return promise;
  }

  async #send(stream: ChannelStream, body: Readable | null): Promise<void> {
    if (body !== null) {
      for await (const chunk of body.iterator({ destroyOnReturn: false })) {
        if (stream.destroyed) return;
        if (!(chunk instanceof Uint8Array)) continue;
        this.#bytesIn += chunk.length;
        if (!stream.write(chunk)) await drained(stream);
      }
    }
    stream.end();
  }

  #result(): UseResult {
    const final = this.#final;
    if (final !== null && this.#stream?.isLost !== true) {
      const isUnread = final.result.ended === 'complete' && !this.body.readableEnded;
      return isUnread ? { ...final.result, ended: 'client' } : final.result;
    }
    const status = this.#head?.kind === 'response' ? this.#head.status : null;
    const stream = this.#stream;
    // The broker ends a stream with a final message. It resets a stream after the head only if the client does not
    // read.
    const isOver = stream === null || stream.isLost || stream.hasEnded || (stream.isReset && this.#head === null);
    const hasFailed = isOver || this.#head?.kind === 'error';
    const { bytesRead: bytesOut = 0, redactions = 0 } = stream ?? {};
    return { status, bytesIn: this.#bytesIn, bytesOut, redactions, ended: hasFailed ? 'failed' : 'client' };
  }
}

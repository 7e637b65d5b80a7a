/** One use as the service sees it: the head, the body and the result that the broker's process sends. */
import type { ClientHttp2Stream } from 'node:http2';
import { pipeline, type Readable, Transform, type TransformCallback } from 'node:stream';
import {
  type BrokerHead,
  decodeResult,
  encodeFrame,
  type HeaderPairs,
  type Order,
  readFrame,
  type UseResult,
} from './protocol.ts';
import { drained } from './upstream.ts';

export class BrokerUse {
  /** Rejects only if the signal was aborted before the head, with its reason. */
  readonly head: Promise<BrokerHead>;
  /**
   * The redacted body; for an upgrade, what the upstream sends. Fails if the response breaks off. To cut the use,
   * destroy it. It must be read or destroyed, otherwise the use never ends.
   */
  readonly body: Readable;
  /** Resolves when the body has closed; never rejects. */
  readonly result: Promise<UseResult>;
  readonly #counter: Counter;
  #isLost = false;
  #bytesIn = 0;
  #status: number | null = null;
  #final: { readonly result: UseResult; readonly trailers: HeaderPairs } | null = null;

  /** `stream`: null if no process could be started. `body`: null without one. */
  constructor(stream: ClientHttp2Stream | null, order: Order, body: Readable | null, signal?: AbortSignal) {
    this.#counter = new Counter(() => {
      // An end without trailers is that of the connection.
      this.#isLost ||= this.#final === null;
      return this.#final?.result.ended === 'complete';
    });
    this.body = this.#counter;
    this.body.on('error', () => undefined);
    const closed = Promise.withResolvers<UseResult>();
    this.body.on('close', () => closed.resolve(this.#resultNow()));
    this.result = closed.promise;
    if (stream === null) {
      this.#isLost = true;
      this.body.destroy();
      this.head = Promise.resolve({ kind: 'error', failure: 'broker' });
      return;
    }
    // ORDER: before the listeners of `pipeline`, which destroy the body.
    const lose = (): void => {
      this.#isLost ||= this.#final === null && !this.body.destroyed;
    };
    stream.on('error', lose).on('aborted', lose).on('close', lose);
    stream.on('trailers', (fields) => {
      this.#final = decodeResult(fields);
    });
    const cut = (): void => void this.body.destroy();
    this.body.on('close', () => {
      signal?.removeEventListener('abort', cut);
      // A response can be complete before the request is; its rest is not sent.
      if (!this.body.readableEnded || !stream.writableFinished) stream.destroy();
    });
    if (signal?.aborted === true) cut();
    else signal?.addEventListener('abort', cut, { once: true });
    this.head = this.#start(stream, signal);
    this.head.catch(() => undefined);
    this.#send(stream, order, body).catch(cut);
  }

  /** The upstream's trailers, known when the body has ended. */
  get trailers(): HeaderPairs {
    return this.#final?.trailers ?? [];
  }

  async #start(stream: ClientHttp2Stream, signal: AbortSignal | undefined): Promise<BrokerHead> {
    try {
      // INVARIANT: only the broker's process writes to this socket, and it is checked by the same types.
      const head = (await readFrame(stream)) as BrokerHead;
      if (head.kind === 'response') this.#status = head.status;
      pipeline(stream, this.#counter, () => undefined);
      if (head.kind === 'error') {
        // WHY here: the caller may destroy the body before the trailers say it.
        this.#isLost = true;
        this.body.resume();
      }
      return head;
    } catch {
      this.body.destroy();
      signal?.throwIfAborted();
      return { kind: 'error', failure: 'broker' };
    }
  }

  async #send(stream: ClientHttp2Stream, order: Order, body: Readable | null): Promise<void> {
    stream.write(encodeFrame(order));
    for await (const chunk of body?.iterator({ destroyOnReturn: false }) ?? []) {
      if (stream.destroyed) return;
      if (!(chunk instanceof Uint8Array)) continue;
      this.#bytesIn += chunk.length;
      if (!stream.write(chunk)) await drained(stream);
    }
    stream.end();
  }

  #resultNow(): UseResult {
    const isRead = this.body.readableEnded;
    const counted = { status: this.#status, bytesIn: this.#bytesIn, bytesOut: this.#counter.bytes, redactions: 0 };
    if (this.#final !== null) {
      const isUnread = this.#final.result.ended === 'complete' && !isRead;
      return isUnread ? { ...this.#final.result, ended: 'client' } : this.#final.result;
    }
    return { ...counted, ended: this.#isLost ? 'failed' : 'client' };
  }
}

/** Counts the bytes, and fails at the end if the response is not complete. */
class Counter extends Transform {
  bytes = 0;
  readonly #isComplete: () => boolean;

  constructor(isComplete: () => boolean) {
    super();
    this.#isComplete = isComplete;
  }

  override _transform(chunk: Uint8Array, _encoding: BufferEncoding, done: TransformCallback): void {
    this.bytes += chunk.length;
    done(null, chunk);
  }

  override _flush(done: TransformCallback): void {
    done(this.#isComplete() ? null : new Error('the response of the upstream broke off'));
  }
}

/** Reads single keys from a terminal. A key counts only if it is pressed after everything that it answers was shown. */
import { setImmediate as immediate, setTimeout as sleep } from 'node:timers/promises';
import { UsageError } from '../../platform/errors.ts';
import { Cancelled } from '../errors.ts';
import { isInteractive, type Terminal } from '../terminal.ts';

/** Quiet time that flushes previous input and ends key repeat. */
const QUIET_MS = 250;
const CTRL_C = '\u0003';

interface RawInput {
  setRawMode(isRaw: boolean): unknown;
}

export class KeyPresses implements Disposable {
  readonly #terminal: Terminal;
  readonly #input: RawInput;
  readonly #quiet: () => Promise<unknown>;
  #chunks = 0;
  #press: ((key: string) => void) | null = null;
  readonly #interrupt = new AbortController();

  /** `quiet` is replaced by tests. @throws UsageError without a terminal */
  constructor(terminal: Terminal, quiet: () => Promise<unknown> = () => sleep(QUIET_MS)) {
    const { stdin } = terminal;
    if (!isInteractive(terminal) || !('setRawMode' in stdin)) {
      throw new UsageError(
        'this needs a terminal',
        'To answer one request: leasehold approve ID --yes. To list them: leasehold approve list',
      );
    }
    this.#terminal = terminal;
    this.#input = stdin as unknown as RawInput;
    this.#quiet = quiet;
    this.#begin();
  }

  get interrupted(): AbortSignal {
    return this.#interrupt.signal;
  }

  #begin(): void {
    this.#input.setRawMode(true);
    this.#terminal.stdin.on('data', this.#take).resume();
  }

  readonly #take = (chunk: Buffer | string): void => {
    this.#chunks++;
    const text = String(chunk);
    // In this mode Ctrl-C is a key.
    if (text.includes(CTRL_C)) this.#interrupt.abort(new Cancelled());
    // Several characters are a paste, or a key without a function here.
    else if (text.length === 1) this.#press?.(text);
  };

  /**
   * Shows the text, then the prompt, and resolves to the first of `keys` that is pressed after the prompt. Discards
   * previous input. @throws Cancelled, the signal's reason
   */
  async ask(text: string, prompt: string, keys: readonly string[], given: AbortSignal): Promise<string> {
    const signal = AbortSignal.any([given, this.interrupted]);
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const abort = (): void => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    try {
      await Promise.race([this.#show(text, prompt), promise]);
      this.#press = (key) => {
        if (keys.includes(key)) resolve(key);
      };
      return await promise;
    } finally {
      this.#press = null;
      signal.removeEventListener('abort', abort);
      this.#terminal.stderr.write('\n');
    }
  }

  /** Resolves when the terminal has printed the text, no input has arrived for a while, and the prompt is shown. */
  async #show(text: string, prompt: string): Promise<void> {
    await this.#write(text);
    for (let seen = -1; seen !== this.#chunks; ) {
      seen = this.#chunks;
      await this.#quiet();
      // WHY: after a stall the timer fires before the input that arrived in the meantime is read.
      await immediate();
    }
    await this.#write(prompt);
  }

  #write(text: string): Promise<void> {
    return new Promise((resolve) => this.#terminal.stderr.write(text, () => resolve()));
  }

  async suspend<T>(work: () => Promise<T>): Promise<T> {
    this[Symbol.dispose]();
    try {
      return await work();
    } finally {
      this.#begin();
    }
  }

  [Symbol.dispose](): void {
    this.#terminal.stdin.off('data', this.#take).pause();
    this.#input.setRawMode(false);
  }
}

/**
 * Files of checkpoints, a JSON object on each line: `checkpoints.log` in the data directory, and the files of
 * `--checkpoint-file`, for example on a volume to which the server may only append. Each file receives the newest
 * checkpoint. A file that cannot be written is tried again with the newest checkpoint of that moment. This never delays
 * the audit log. SOURCE: docs/formats.md, "Checkpoints".
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { checkpointSigner, type LogCheckpoint, openCheckpoint, parseCheckpoint } from '../crypto/checkpoint.ts';
import type { VaultKeys } from '../crypto/vault-keys.ts';
import { errnoSuffix, StartupError } from '../platform/errors.ts';
import { assertLineFile, LineFile, readEnd } from '../platform/line-file.ts';
import { dataDirPaths } from '../platform/paths.ts';
import { checkPrivateFile, writePrivateFile } from '../platform/private-files.ts';
import { settledWithin } from '../platform/waiting.ts';
import type { SignedCheckpoint } from '../vault/audit/checkpoints.ts';
import type { Configuration } from './configuration.ts';
import { logFailure, type ServerLog } from './log.ts';

/** The file in the data directory keeps this many lines, and at times up to twice as many. */
const MAX_LINES = 1000;
/**
 * Bytes read from the end, where the newest checkpoint is. They hold more than MAX_LINES lines; an operator's file may
 * be longer.
 */
const MAX_READ_BYTES = 8 * 1024 * 1024;

type CheckpointKeys = Pick<VaultKeys, 'vaultId' | 'signing'>;

/** Content of an existing file; `newest` is null if no line contains a checkpoint of this vault. */
interface Contents {
  readonly newest: LogCheckpoint | null;
}

/** The checkpoint files; the file in the data directory is the first one. */
export function checkpointFilesOf({
  dataDir,
  checkpointFiles,
}: Pick<Configuration, 'dataDir' | 'checkpointFiles'>): CheckpointFile[] {
  const own = new CheckpointFile(dataDirPaths(dataDir).checkpointsFile, true);
  return [own, ...checkpointFiles.map((path) => new CheckpointFile(path, false))];
}

export class CheckpointFile {
  readonly path: string;
  /** Whether the file is in the data directory. That file is private, and is shortened from time to time. */
  readonly isOwn: boolean;
  readonly #file: LineFile;
  #lines = 0;

  constructor(path: string, isOwn: boolean) {
    this.path = path;
    this.isOwn = isOwn;
    this.#file = new LineFile(path);
  }

  /** Null for a missing file or an empty one. @throws StartupError */
  read(keys: CheckpointKeys): Contents | null {
    const lines = this.#readLines();
    this.#lines = lines.length;
    return lines.length === 0 ? null : { newest: findNewest(lines, keys) };
  }

  async append(checkpoint: SignedCheckpoint): Promise<void> {
    if (this.isOwn && this.#lines >= 2 * MAX_LINES) await this.#file.rewrite(() => this.#shorten());
    await this.#file.append(toLine(checkpoint));
    this.#lines += 1;
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  #shorten(): void {
    const kept = this.#readLines().slice(-MAX_LINES);
    writePrivateFile(this.path, kept.map((line) => `${line}\n`).join(''));
    this.#lines = kept.length;
  }

  /** The last lines of the file, without an incomplete line at its end, as a crash leaves it. */
  #readLines(): string[] {
    if (this.isOwn && !checkPrivateFile(this.path)) return [];
    assertLineFile(this.path);
    try {
      const { text, isWhole } = readEnd(this.path, MAX_READ_BYTES);
      return text.split('\n').slice(isWhole ? 0 : 1, -1);
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
      throw new StartupError(`${this.path} cannot be read${errnoSuffix(error)}.`);
    }
  }
}

/** The largest checkpoint of the newest key; null if none of the lines was signed with one of the keys. */
function findNewest(lines: readonly string[], keys: CheckpointKeys): LogCheckpoint | null {
  const notes = lines.flatMap((line) => {
    const note = noteOf(line);
    const checkpoint = note === null ? null : parseCheckpoint(note);
    return note === null || checkpoint === null ? [] : [{ note, ...checkpoint }];
  });
  // WHY sorted: verifying a signature takes 0.1 ms, and there are thousands of lines.
  notes.sort((a, b) => b.size - a.size);
  for (const { generation } of keys.signing.toReversed()) {
    const signer = checkpointSigner(keys, generation);
    for (const { note, origin } of notes) {
      const checkpoint = origin === signer.name ? openCheckpoint(note, signer) : null;
      if (checkpoint !== null) return checkpoint;
    }
  }
  return null;
}

function toLine({ origin, size, rootText, signedAt, note }: SignedCheckpoint): string {
  const fields = { time: new Date(signedAt).toISOString(), origin, size, root: rootText, note };
  return `${JSON.stringify(fields)}\n`;
}

function noteOf(line: string): string | null {
  try {
    const { note }: Record<string, unknown> = JSON.parse(line);
    return typeof note === 'string' ? note : null;
  } catch {
    return null;
  }
}

export interface CheckpointSinkStatus {
  /** `data-directory`, or `file`; from the second file on, with a number. */
  readonly label: string;
  /** How long a checkpoint has waited without being known to be on disk; 0 if none waits. */
  readonly waitingSeconds: number;
  readonly failures: number;
}

const MIN_RETRY_MS = 1000;
const MAX_RETRY_MS = 60_000;
/**
 * Limits the wait at shutdown for the last checkpoint, and for a file that does not close, such as on a share that
 * hangs.
 */
const STOP_TIMEOUT_MS = 2000;

export class CheckpointSinks {
  readonly #sinks: readonly CheckpointSink[];

  constructor(files: readonly Sink[], logError: ServerLog['error']) {
    let others = 0;
    this.#sinks = files.map((file) => {
      others += file.isOwn ? 0 : 1;
      const label = file.isOwn ? 'data-directory' : others === 1 ? 'file' : `file-${others}`;
      return new CheckpointSink(file, label, logError);
    });
  }

  publish(checkpoint: SignedCheckpoint): void {
    for (const sink of this.#sinks) sink.publish(checkpoint);
  }

  status(): CheckpointSinkStatus[] {
    return this.#sinks.map(({ status }) => status);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#sinks.map((sink) => sink.stop()));
  }
}

type Sink = Pick<CheckpointFile, 'path' | 'isOwn' | 'append' | 'close'>;

class CheckpointSink {
  readonly #file: Sink;
  readonly #label: string;
  readonly #logError: ServerLog['error'];
  readonly #stopped = new AbortController();
  #waiting: SignedCheckpoint | null = null;
  /** When the oldest unwritten checkpoint began to wait, on the clock of `performance.now()`. */
  #waitingSince = 0;
  #failures = 0;
  #running: Promise<void> | null = null;

  constructor(file: Sink, label: string, logError: ServerLog['error']) {
    this.#file = file;
    this.#label = label;
    this.#logError = logError;
  }

  get status(): CheckpointSinkStatus {
    const waitingSeconds = this.#waiting === null ? 0 : (performance.now() - this.#waitingSince) / 1000;
    return { label: this.#label, waitingSeconds, failures: this.#failures };
  }

  publish(checkpoint: SignedCheckpoint): void {
    if (this.#waiting === null) this.#waitingSince = performance.now();
    this.#waiting = checkpoint;
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    await settledWithin(this.#running, STOP_TIMEOUT_MS);
    this.#stopped.abort();
    await settledWithin(this.#file.close(), STOP_TIMEOUT_MS);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopped;
    for (let retryMs = MIN_RETRY_MS; this.#waiting !== null && !signal.aborted; ) {
      const checkpoint = this.#waiting;
      try {
        await this.#file.append(checkpoint);
        if (this.#waiting === checkpoint) this.#waiting = null;
        else this.#waitingSince = performance.now();
        retryMs = MIN_RETRY_MS;
      } catch (error) {
        this.#failures += 1;
        const line = `a checkpoint could not be written to ${this.#file.path}; the server retries`;
        logFailure(this.#logError, line, error);
        await sleep(retryMs, undefined, { signal }).catch(() => undefined);
        retryMs = Math.min(2 * retryMs, MAX_RETRY_MS);
      }
    }
    // WHY here: a checkpoint that is published after the loop has ended must start the loop again.
    this.#running = null;
  }
}

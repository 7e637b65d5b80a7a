/**
 * Streams a backup to the administrator, while the vault is in use. Another process reads one snapshot; this one only
 * passes its bytes on. Values and the private keys of agents are encrypted, so that the stream reveals none of them
 * without the root key. SOURCE: docs/backup.md.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { on } from 'node:events';
import { rmSync } from 'node:fs';
import { extname } from 'node:path';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { decodeStoredKeys } from '../../backup/records.ts';
import type { Context } from '../../core/operation.ts';
import { ApiError } from '../../engine/errors.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { readVersion } from '../../platform/installation.ts';
import { temporaryPath } from '../../platform/private-files.ts';
import { endBackup, startBackup } from '../audit/lifecycle.ts';
import type { Vault } from '../vault.ts';
import { encryptAgentKeys } from './agent-keys.ts';
import type { KeysOfAgents, ReaderReport, ReaderSetup } from './reader.ts';

const RETRY_AFTER_S = 60;
/** The objects of a chunk of rows are soon garbage: a larger heap would only take more memory. */
const READER_FLAGS = ['--max-semi-space-size=8', '--disable-sigusr1', '--disable-proto=delete'];

/** The suffixes of a copy's files, including those of an incomplete copy. */
const COPY_SUFFIXES = ['', '-wal', '-shm', '-journal'];

/** The longest time in which the client may read no byte. A slow disk or network pauses for far less. */
const MAX_STALL_MS = 120_000;

interface RunningBackup {
  abort(): void;
  /** Resolves when the end is recorded, or cannot be. */
  readonly ended: Promise<void>;
}

/** WHY at most one for each ledger: a backup takes disk space and processor time. */
const running = new WeakMap<Ledger, RunningBackup>();
/** The backup of a ledger that is being closed. */
const NEVER_AGAIN: RunningBackup = { abort: () => undefined, ended: Promise.resolve() };
/** The longest time to wait until a reader has ended. A disk that does not respond can delay it. */
const ABORT_TIMEOUT_MS = 5000;

/**
 * Records the backup and takes its snapshot. Resolves to the stream of its records; destroying it ends the backup. The
 * end is recorded too. @throws ACCESS_DENIED, UNAUTHENTICATED, UNAVAILABLE
 */
export async function takeBackup(vault: Vault, context: Context): Promise<Readable> {
  // WHY here: after the vault is locked, the vault of a request has none of them.
  const { ledger, store, keys, agentKeys } = vault;
  if (running.has(ledger)) {
    throw new ApiError('UNAVAILABLE', 'Another backup is being taken. Try again when it has ended.', RETRY_AFTER_S);
  }
  const stop = new AbortController();
  const { promise: ended, resolve: setEnded } = Promise.withResolvers<void>();
  let stream: Readable | null = null;
  const abort = (): void => {
    stop.abort();
    stream?.destroy();
  };
  const own = { abort, ended };
  const forget = (): void => {
    if (running.get(ledger) === own) running.delete(ledger);
    setEnded();
  };
  running.set(ledger, own);
  try {
    const started = await ledger.submit(startBackup(context));
    const seenSeq = ledger.memory.lastSeenEntry?.seq ?? 0;
    const chunks = readChunks({ store, keys, agentKeys }, seenSeq, stop.signal, abort, async (isComplete, reason) => {
      // If the storage has failed, the entry of the start stays alone.
      await ledger.submit(endBackup(started, context, isComplete, reason)).catch(() => undefined);
      forget();
    });
    // ORDER: the first chunk is read before anything is sent, so that an error of the snapshot is a response.
    const first = await chunks.next();
    if (stop.signal.aborted) {
      await chunks.return(undefined);
      throw aborted();
    }
    stream = Readable.from(prepend(first, chunks), { objectMode: false });
    return stream.once('close', () => {
      // A generator that waits for a chunk ends only then.
      stop.abort();
      // WHY not in a `finally` of `prepend`: a generator that was never read does not run it.
      chunks.return(undefined).catch(() => undefined);
    });
  } catch (error) {
    forget();
    // The first error of a backup that is aborted, or whose reader does not start, depends on the moment.
    throw error instanceof ApiError && !stop.signal.aborted ? error : aborted();
  }
}

/** Aborts the running backup, and lets no other begin. Resolves when its end is recorded, or cannot be. */
export async function abortBackup(ledger: Ledger): Promise<void> {
  const backup = running.get(ledger);
  running.set(ledger, NEVER_AGAIN);
  backup?.abort();
  await Promise.race([backup?.ended, sleep(ABORT_TIMEOUT_MS, undefined, { ref: false })]);
}

async function* prepend<T>(first: IteratorResult<T>, others: AsyncGenerator<T>): AsyncGenerator<T> {
  if (first.done !== true) yield first.value;
  yield* others;
}

async function* readChunks(
  vault: Pick<Vault, 'store' | 'keys' | 'agentKeys'>,
  seenSeq: number,
  stop: AbortSignal,
  onStall: () => void,
  onEnd: (isComplete: boolean, reason: string) => Promise<void>,
): AsyncGenerator<Uint8Array> {
  const log = await vault.store.locateLog();
  const copy = log.kind === 'sqlite' ? temporaryPath(log.file) : '';
  const child = startReader();
  // WHY: a message to a reader that was killed is an error too, and without a listener it would end the server.
  child.on('error', () => undefined);
  const kill = (): void => void child.kill('SIGKILL');
  stop.addEventListener('abort', kill);
  if (stop.aborted) kill();
  const exited = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const reports = on(child, 'message', { close: ['close'] }) as AsyncIterator<ReaderReport[]>;
  let bytes = 0;
  let reason = '';
  try {
    // ORDER: before the snapshot, so that its keyset is this one or a later one.
    const keys = vault.keys.fork();
    const agentKeysBefore = await vault.agentKeys.readAll();
    child.send({ log, copy, version: readVersion() } satisfies ReaderSetup);
    const taken = await next(reports);
    if (taken.kind !== 'snapshot') throw new Error('the reader of the backup reported no snapshot');
    if (taken.throughSeq < seenSeq) {
      throw notTaken(
        `the snapshot ends at entry ${taken.throughSeq}, before entry ${seenSeq}, which this node has seen`,
      );
    }
    const agentKeysAfter = await vault.agentKeys.readAll();
    // WHY: the restore has only the data keys of the snapshot.
    if (!keys.refresh(decodeStoredKeys(taken.keys))) {
      const message =
        "The vault's keys in the snapshot do not open: they changed meanwhile, or were altered. Try again.";
      throw new ApiError('UNAVAILABLE', message, RETRY_AFTER_S);
    }
    const agentKeys = encryptAgentKeys(keys, agentKeysBefore, agentKeysAfter);
    child.send({ agentKeys } satisfies KeysOfAgents);
    for await (const chunk of child.stdout ?? []) {
      bytes += chunk.length;
      // WHY: the copy takes space, and no other backup is taken until it ends.
      const stalled = setTimeout(onStall, MAX_STALL_MS);
      try {
        yield chunk;
      } finally {
        clearTimeout(stalled);
      }
    }
    await next(reports);
    reason = `complete through entry ${taken.throughSeq}, ${bytes} bytes`;
  } finally {
    kill();
    await exited;
    try {
      if (copy !== '') for (const suffix of COPY_SUFFIXES) rmSync(copy + suffix, { force: true });
    } finally {
      const isComplete = reason !== '' && !stop.aborted;
      await onEnd(isComplete, isComplete ? reason : `incomplete, ended after ${bytes} bytes`);
    }
  }
}

/** @throws UNAVAILABLE for a failure of the store, or if the process ended */
async function next(reports: AsyncIterator<ReaderReport[]>): Promise<ReaderReport> {
  const result = await reports.next();
  const [report] = result.done === true ? [] : result.value;
  if (report === undefined) throw aborted();
  if (report.kind !== 'failure') return report;
  throw notTaken(report.reason);
}

/** WHY the store's reason: the administrator, who takes the backup, also operates the store. */
function notTaken(reason: string): ApiError {
  return new ApiError('UNAVAILABLE', `The backup could not be taken: ${reason}.`, RETRY_AFTER_S);
}

function aborted(): ApiError {
  return new ApiError(
    'UNAVAILABLE',
    'The backup was aborted: its reader ended, or the vault is being closed. Try again.',
    RETRY_AFTER_S,
  );
}

function startReader(): ChildProcess {
  const program = fileURLToPath(new URL(`../../bin/backup-reader${extname(import.meta.url)}`, import.meta.url));
  return spawn(process.execPath, [...READER_FLAGS, program], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
}

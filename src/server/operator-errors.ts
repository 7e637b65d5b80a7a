/** Errors that the server and its tools report to the operator in one line. Any other error is a bug. */
import { StartupError, UsageError } from '../platform/errors.ts';
import { StoreError } from '../store/errors.ts';
import { isDamage } from '../store/sqlite/database.ts';

const DISK_FULL = 'The disk is full: free space on it, and start again.';
const READ_ONLY = 'The disk or the file is read-only: make it writable, and start again.';
const NO_MEMORY = 'There is not enough memory: free some, and start again.';
const PERMISSIONS = 'Check the owner and the permissions of the file and its directory.';

/** Advice to the operator about a failure of the system, by its code. */
const ADVICE: ReadonlyMap<unknown, string> = new Map([
  ['ENOSPC', DISK_FULL],
  ['EDQUOT', 'The disk quota is exceeded: free space, or raise the quota, and start again.'],
  ['EROFS', READ_ONLY],
  ['EACCES', PERMISSIONS],
  ['EPERM', PERMISSIONS],
  ['EMFILE', 'Too many files are open: raise the limit (ulimit -n), and start again.'],
  ['ENFILE', 'Too many files are open on this machine: close some, and start again.'],
  ['ENOMEM', NO_MEMORY],
  ['EIO', "The disk failed: see the system's log."],
]);

/** Advice about a failure of SQLite, by its primary code. SOURCE: sqlite.org/rescode.html. */
const SQLITE_ADVICE: ReadonlyMap<number, string> = new Map([
  [7, NO_MEMORY],
  [8, READ_ONLY],
  [10, "The disk failed, or its quota is exceeded: see the system's log."],
  [13, DISK_FULL],
  [
    14,
    'Check the permissions of the file and its directory, whether the disk has room for another file (df -i), and the limit of open files (ulimit -n).',
  ],
]);
const PRIMARY_CODE = 0xff;

/** The line and the exit code; null for a bug. */
export function describeFailure(thrown: unknown): { readonly line: string; readonly code: number } | null {
  // The error that ended the work, if releasing its resources also failed.
  if (thrown instanceof SuppressedError) return describeFailure(thrown.suppressed);
  if (!(thrown instanceof Error)) return null;
  if (thrown instanceof UsageError) return { line: toLine(withHint(thrown)), code: 2 };
  if (thrown instanceof StartupError) return { line: toLine(thrown.message), code: 1 };
  if (!(thrown instanceof StoreError) && !('syscall' in thrown)) return null;
  const advice = adviceFor(thrown);
  const line = advice === null ? thrown.message : `${thrown.message.replace(/\.$/, '')}. ${advice}`;
  return { line: toLine(line), code: 1 };
}

/** The message, which ends with one period, and the remedy. */
function withHint({ message, hint }: UsageError): string {
  const sentence = /[.?!…]$/.test(message) ? message : `${message}.`;
  return hint === null ? sentence : `${sentence} ${hint}`;
}

/** SQLite reports a damaged schema in several lines. */
const toLine = (message: string): string => message.replaceAll(/\s*\n\s*/g, ' ');

/** INVARIANT: advises to restore a backup only if the content of a file is wrong. */
function adviceFor(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  if (isDamage(error)) return 'It is damaged or no database: restore a backup.';
  const ofSqlite = 'errcode' in error ? SQLITE_ADVICE.get(Number(error.errcode) & PRIMARY_CODE) : undefined;
  const ofSystem = 'code' in error ? ADVICE.get(error.code) : undefined;
  return ofSqlite ?? ofSystem ?? adviceFor(error.cause);
}

/** Prints the error for the operator and exits. @throws the error itself if it is a bug */
export function exitWithError(thrown: unknown): never {
  const failure = describeFailure(thrown);
  if (failure === null) throw thrown;
  process.stderr.write(`leasehold: ${failure.line}\n`);
  process.exit(failure.code);
}

/** Reads one level of the tree of credential paths, in steps, and the programs that are connected to the database. */
import { type Dialect, numberIn } from './dialect.ts';
import { type Procedure, scanUntilDeadline, sql } from './statement.ts';

/** The paths that begin with `base` (empty, or a path and a slash), up to, not including, `end`. */
export interface LevelQuery {
  readonly base: string;
  readonly end: string;
}

interface LevelEntry {
  readonly name: string;
  /** The number of credentials that the step found below a directory. */
  readonly count: number;
  /** The fields of a credential; null for a directory. */
  readonly credential: { readonly type: string; readonly updatedAt: number } | null;
}

/** `next`: the path from which the next step continues; null at the end. A directory may be in several steps. */
export interface LevelStep {
  readonly entries: readonly LevelEntry[];
  readonly next: string | null;
}

/** Credentials that are read in one statement. Further ones of a directory are only counted. */
const ROWS = 256;

export function* readLevel({ chunkRows }: Dialect, { base, end }: LevelQuery, from: string): Procedure<LevelStep> {
  const entries: { name: string; count: number; credential: LevelEntry['credential'] }[] = [];
  const next = yield* scanUntilDeadline(from, function* (cursor) {
    const rows = yield sql`SELECT path, type, updated_at FROM credentials
      WHERE path >= ${cursor} AND path < ${end} ORDER BY path LIMIT ${ROWS}`;
    let last = '';
    let directory: (typeof entries)[number] | null = null;
    for (const row of rows) {
      last = String(row['path']);
      const slash = last.indexOf('/', base.length);
      const name = slash === -1 ? last.slice(base.length) : last.slice(base.length, slash);
      if (slash !== -1 && directory?.name === name) {
        directory.count += 1;
        continue;
      }
      const credential = slash === -1 ? { type: String(row['type']), updatedAt: numberIn(row, 'updated_at') } : null;
      const entry: (typeof entries)[number] = { name, count: 1, credential };
      entries.push(entry);
      directory = slash === -1 ? null : entry;
    }
    if (rows.length < ROWS) return null;
    // '!' sorts before every character of a path, and '0' follows '/'.
    if (directory === null) return `${last}!`;
    const directoryEnd = `${base}${directory.name}0`;
    const [rest] = yield sql`SELECT max(path) AS last, count(*) AS n FROM (SELECT path FROM credentials
      WHERE path > ${last} AND path < ${directoryEnd} ORDER BY path LIMIT ${chunkRows}) AS rest`;
    const counted = numberIn(rest, 'n');
    directory.count += counted;
    return counted < chunkRows ? directoryEnd : `${String(rest?.['last'])}!`;
  });
  return { entries, next };
}

/** The programs that are connected to the database with names of Leasehold, each once; none if this is the only one. */
export function* readConnectedPrograms({ connectedPrograms }: Dialect): Procedure<string[]> {
  if (connectedPrograms === null) return [];
  const rows = yield connectedPrograms;
  return rows.map(({ name }) => String(name));
}

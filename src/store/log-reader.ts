/** Opens a log for reading from a thread, next to the store. */

import { readEntries } from './audit-log.ts';
import type { LogReader } from './port.ts';
import { Hosts } from './postgres/hosts.ts';
import { Pool } from './postgres/pool.ts';
import { SqliteLogFile } from './sqlite/log-file.ts';
import type { LogLocation } from './store.ts';

/** @throws StoreError */
export function openLogReader(location: LogLocation): LogReader {
  if (location.kind === 'sqlite') return new SqliteLogFile(location.file);
  const pool = new Pool(new Hosts(location.address, location.seen), 1, 'verifying');
  return {
    readEntries: (fromSeq, toSeq, limit) =>
      pool.read((connection) => connection.run(readEntries(fromSeq, toSeq, limit))),
    close: () => pool.close(),
  };
}

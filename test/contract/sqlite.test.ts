// The contract of the store, for SQLite.

import { join } from 'node:path';
import { SqliteStore } from '../../src/store/sqlite/store.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { storeContract } from './store.ts';

storeContract('SQLite', async (scope) => {
  const file = join(temporaryDirectory(scope), 'vault.db');
  return async () => new SqliteStore(file);
});

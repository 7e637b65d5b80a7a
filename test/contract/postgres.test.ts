// The contract of the store, for PostgreSQL.

import { parseAddress } from '../../src/store/postgres/database-url.ts';
import { PostgresStore } from '../../src/store/postgres/store.ts';
import { newMigratedDatabase } from '../kit/database.ts';
import { storeContract } from './store.ts';

storeContract('PostgreSQL', async (scope) => {
  const address = parseAddress(await newMigratedDatabase(scope));
  return () => PostgresStore.open(address);
});

/** Credentials for lists, written directly to the store: without values, and the log does not record them. */
import { executeSql } from '../kit/direct-db.ts';
import { STORE } from '../kit/stores.ts';

/** Adds credentials at `many/<n modulo 1000>/key<n>`. Lists and decisions do not authenticate rows. */
export function addCredentials(dataDir: string, count: number): Promise<void> {
  const number = STORE === 'sqlite' ? { column: ', count_id', value: ', i + 1000' } : { column: '', value: '' };
  const counts = STORE === 'sqlite' ? 'SELECT count_id, 0, 0' : 'SELECT id, 0';
  return executeSql(
    dataDir,
    `BEGIN;
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
    INSERT INTO credentials (id, path, type, description, created_at, updated_at, version, mac${number.column})
      SELECT 'credential-' || i, 'many/' || (i % 1000) || '/key' || i, 'generic', '', 1, 1, 1, ''${number.value} FROM n;
    INSERT INTO access_counts ${counts} FROM credentials WHERE id LIKE 'credential-%';
    COMMIT`,
  );
}

/**
 * The anchors of a migration: the source must have every acknowledged entry, and the target is anchored before it is
 * a vault.
 */
import { GENESIS_MAC } from '../core/audit.ts';
import type { VaultKeys } from '../crypto/keys.ts';
import { dataDirPaths } from '../platform/data-dir-paths.ts';
import type { Store } from '../store/sql-store.ts';
import { AnchorFile } from './anchor-file.ts';
import type { VaultLocation } from './locations.ts';
import { checkRollback } from './rollback-check.ts';

function anchorAt(location: VaultLocation, keys: VaultKeys): AnchorFile | null {
  return location.kind === 'directory' ? new AnchorFile(dataDirPaths(location.dir).anchorFile, keys.row) : null;
}

/**
 * Checks the source's log against its anchor. Resolves to a warning about a loss that the operator accepts, or null.
 * @throws StartupError
 */
export async function checkSourceAnchor(
  from: VaultLocation,
  store: Store,
  keys: VaultKeys,
  accepts: boolean,
): Promise<string | null> {
  const anchor = anchorAt(from, keys);
  return anchor === null ? null : checkRollback(anchor, { end: store, isMultiWriter: false, keys }, accepts);
}

/**
 * Anchors the log in a target directory. @throws StartupError if an anchor there names a later entry, which a node
 * has seen
 */
export async function anchorTarget(to: VaultLocation, source: Store, keys: VaultKeys, accepts: boolean): Promise<void> {
  const anchor = anchorAt(to, keys);
  if (anchor === null) return;
  await checkRollback(anchor, { end: source, isMultiWriter: true, keys }, accepts);
  const { last } = await source.readHead();
  await anchor.keep(last ?? { seq: 0, hmac: GENESIS_MAC });
  await anchor.close();
}

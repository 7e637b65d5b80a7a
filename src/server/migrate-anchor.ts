/** The anchors of a move's two ends: a vault moves only with what was acknowledged, and is anchored before it is a vault. */
import { GENESIS_MAC } from '../core/audit.ts';
import type { VaultKeys } from '../crypto/keys.ts';
import { layOut } from '../platform/data-dir-paths.ts';
import type { Store } from '../store/store.ts';
import { AnchorFile } from './anchor-file.ts';
import type { VaultLocation } from './locations.ts';
import { checkRollback } from './rollback-check.ts';

function anchorAt(place: VaultLocation, keys: VaultKeys): AnchorFile | null {
  return place.kind === 'directory' ? new AnchorFile(layOut(place.dir).anchorFile, keys.row) : null;
}

/**
 * Holds the source's log against its own anchor. Resolves to what to say of a loss that the operator accepts, or null.
 * @throws StartupError
 */
export async function checkSourceAnchor(
  from: VaultLocation,
  store: Store,
  keys: VaultKeys,
  accepts: boolean,
): Promise<string | null> {
  const anchor = anchorAt(from, keys);
  return anchor === null ? null : checkRollback(anchor, { end: store, isShared: false, keys }, accepts);
}

/**
 * Anchors the log that arrives in a directory, unless that has an anchor which the log does not reach: a node that kept its keys there
 * has seen more. @throws StartupError
 */
export async function anchorTarget(to: VaultLocation, source: Store, keys: VaultKeys, accepts: boolean): Promise<void> {
  const anchor = anchorAt(to, keys);
  if (anchor === null) return;
  await checkRollback(anchor, { end: source, isShared: true, keys }, accepts);
  const { last } = await source.readHead();
  await anchor.keep(last ?? { seq: 0, hmac: GENESIS_MAC });
  await anchor.close();
}

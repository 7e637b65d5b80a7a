/** What a store counts. `null` where the other kind of store has no such thing. */
import type { Distribution } from '../core/measures.ts';

export interface StoreMeasures {
  /** Null on a shared store, whose server syncs. */
  readonly disk: DiskMeasures | null;
  /** Null for the embedded store. */
  readonly connections: ConnectionMeasures | null;
}

export interface DiskMeasures {
  /** Syncs of the write-ahead log. */
  readonly syncSeconds: Distribution;
  /** Checkpoints: pages of the write-ahead log written into the database. */
  readonly checkpointSeconds: Distribution;
  /** Pages in the write-ahead log that are not in the database yet. */
  pendingPages(): number;
  /** Size of the write-ahead log's file in bytes; it does not shrink while the service runs. */
  walBytes(): number;
}

/** Connections for reading; one more writes. */
interface ConnectionMeasures {
  inUse(): number;
  /** Reads that wait for a connection. */
  waiting(): number;
}

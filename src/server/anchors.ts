/**
 * Keeps checkpoints outside the database: in `anchors.log` in the data directory, and where the operator wants them. At
 * a start the files show whether the log still extends what was signed.
 */
import { dataDirPaths } from '../platform/data-dir-paths.ts';
import type { Checkpoints, SignedCheckpoint } from '../vault/checkpoints.ts';
import type { TreeStore } from '../vault/log-tree.ts';
import { fileDestination, STDOUT_DESTINATION, webhookDestination, witnessDestination } from './anchor-destinations.ts';
import type { AnchorOption } from './anchor-options.ts';
import { CheckpointDelivery, type CheckpointDestination, type DestinationStatus } from './checkpoint-delivery.ts';
import { CheckpointFile } from './checkpoint-file.ts';
import type { Configuration } from './configuration.ts';
import type { ServiceLog } from './log.ts';
import { readBearerToken } from './receiver-secrets.ts';

/** The files of checkpoints that the configuration names, that of the data directory first. */
export function checkpointFiles({ dataDir, anchors }: Pick<Configuration, 'dataDir' | 'anchors'>): CheckpointFile[] {
  const others = anchors.flatMap((option) => (option.kind === 'file' ? [new CheckpointFile(option.path, false)] : []));
  return [new CheckpointFile(dataDirPaths(dataDir).checkpointsFile, true), ...others];
}

export class Anchors {
  /** To files, and to receivers elsewhere. */
  readonly #files: CheckpointDelivery[];
  readonly #receivers: CheckpointDelivery[];

  /** @throws StartupError for an invalid token file */
  constructor(
    { anchors, anchorTokenFile }: Pick<Configuration, 'anchors' | 'anchorTokenFile'>,
    files: readonly CheckpointFile[],
    store: TreeStore,
    checkpoints: Checkpoints,
    logError: ServiceLog['error'],
    warn: (line: string) => void,
  ) {
    const token = anchorTokenFile === null ? null : readBearerToken(anchorTokenFile, warn);
    const [own] = files;
    const onCosigned = async (checkpoint: SignedCheckpoint, cosignature: string): Promise<void> => {
      const cosigned = checkpoints.addCosignature(checkpoint, cosignature);
      await own?.append(cosigned).catch(() => undefined);
    };
    const toDestination = (option: AnchorOption): readonly CheckpointDestination[] => {
      switch (option.kind) {
        case 'file':
          return [];
        case 'stdout':
          return [STDOUT_DESTINATION];
        case 'webhook':
          return [webhookDestination(option, token)];
        case 'witness':
          return [witnessDestination(option, token, store, onCosigned)];
      }
    };
    const counts = new Map<string, number>();
    const toDelivery = (destination: CheckpointDestination): CheckpointDelivery => {
      const { kind } = destination;
      const number = (counts.get(kind) ?? 0) + 1;
      counts.set(kind, number);
      return new CheckpointDelivery(destination, number === 1 ? kind : `${kind}-${number}`, logError);
    };
    this.#files = files.map((file) => toDelivery(fileDestination(file, file === own ? 'data-directory' : 'file')));
    this.#receivers = anchors.flatMap(toDestination).map(toDelivery);
  }

  get #deliveries(): readonly CheckpointDelivery[] {
    return [...this.#files, ...this.#receivers];
  }

  publish(checkpoint: SignedCheckpoint): void {
    for (const delivery of this.#deliveries) delivery.offer(checkpoint);
  }

  status(): DestinationStatus[] {
    return this.#deliveries.map(({ status }) => status);
  }

  async stop(): Promise<void> {
    // ORDER: a witness that answers last adds its cosignature to the file of the data directory.
    for (const deliveries of [this.#receivers, this.#files]) {
      await Promise.all(deliveries.map((delivery) => delivery.stop()));
    }
  }
}

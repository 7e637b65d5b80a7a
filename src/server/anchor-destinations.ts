/** The destinations of checkpoints. SOURCE: docs/audit.md, "Where checkpoints go". */
import { findCosignature } from '../crypto/cosignature.ts';
import { encodeHash } from '../crypto/tree.ts';
import type { SignedCheckpoint } from '../vault/checkpoints.ts';
import { LogTree, type TreeStore } from '../vault/log-tree.ts';
import type { AnchorOption } from './anchor-options.ts';
import type { CheckpointDestination } from './checkpoint-delivery.ts';
import type { CheckpointFile } from './checkpoint-file.ts';
import { Poster } from './streams/http-post.ts';
import { SinkError } from './streams/sink.ts';

type Options<Kind extends AnchorOption['kind']> = Extract<AnchorOption, { kind: Kind }>;

export function fileDestination(file: CheckpointFile, kind: 'data-directory' | 'file'): CheckpointDestination {
  return { name: file.path, kind, send: (checkpoint) => file.append(checkpoint), close: () => file.close() };
}

export const STDOUT_DESTINATION: CheckpointDestination = {
  name: 'standard output',
  kind: 'stdout',
  send: (checkpoint) =>
    new Promise((resolve, reject) => {
      const line = `${JSON.stringify(toMessage(checkpoint))}\n`;
      process.stdout.write(line, (error) => (error ? reject(error) : resolve()));
    }),
  close: async () => undefined,
};

/** Posts `{"type":"audit.checkpoint","timestamp":…,"data":{…}}`. The note is signed, so the request is not. */
export function webhookDestination({ url }: Options<'webhook'>, token: string | null): CheckpointDestination {
  const poster = new Poster({ url, token, ca: null });
  return {
    name: `the webhook at ${url.host}`,
    kind: 'webhook',
    async send(checkpoint, signal) {
      await poster.post(JSON.stringify(toMessage(checkpoint)), {}, signal);
    },
    close: async () => poster.close(),
  };
}

function toMessage({ origin, size, rootText, signedAt, note, verifierKey }: SignedCheckpoint): object {
  const data = { origin, size, root: rootText, note, verifier_key: verifierKey };
  return { type: 'audit.checkpoint', timestamp: new Date(signedAt).toISOString(), data };
}

/**
 * Submits checkpoints to a witness, with the proof that each extends the last one that it cosigned. `onCosigned` gets
 * the signature line of the witness. SOURCE: https://c2sp.org/tlog-witness.
 */
export function witnessDestination(
  { url, witness }: Options<'witness'>,
  token: string | null,
  store: TreeStore,
  onCosigned: (checkpoint: SignedCheckpoint, cosignature: string) => Promise<void>,
): CheckpointDestination {
  const poster = new Poster({ url, token, ca: null });
  const headers = { 'content-type': 'text/plain; charset=utf-8' };
  // The witness corrects it in its first response.
  let cosigned = { origin: '', size: 0 };
  const submit = async (checkpoint: SignedCheckpoint, signal: AbortSignal) => {
    const { origin, size, note } = checkpoint;
    if (cosigned.origin !== origin) cosigned = { origin, size: 0 };
    const proof = await new LogTree(store, size).consistencyProof(cosigned.size);
    const lines = [`old ${cosigned.size}`, ...proof.map(encodeHash), '', note];
    return poster.exchange(lines.join('\n'), headers, signal);
  };
  return {
    name: `the witness ${witness.name}`,
    kind: 'witness',
    async send(checkpoint, signal) {
      const { origin, size, note } = checkpoint;
      let response = await submit(checkpoint, signal);
      const known = /^(0|[1-9][0-9]{0,15})\n$/.exec(response.text)?.[1];
      if (response.status === 409 && known !== undefined && Number(known) <= size) {
        cosigned = { origin, size: Number(known) };
        response = await submit(checkpoint, signal);
      }
      if (response.status !== 200) throw new SinkError(`the witness returned HTTP ${response.status}`);
      const cosignature = findCosignature(note, response.text, witness);
      if (cosignature === null) throw new SinkError('the witness returned no valid signature');
      cosigned = { origin, size };
      await onCosigned(checkpoint, cosignature);
    },
    close: async () => poster.close(),
  };
}

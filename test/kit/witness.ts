/**
 * A witness that checks what a real one checks before it cosigns: the log's signature, that it goes on from the size
 * that was cosigned last, and the consistency proof. SOURCE: https://c2sp.org/tlog-witness and tlog-cosignature.
 */
import { createHash, generateKeyPairSync, sign, verify } from 'node:crypto';
import { openCheckpoint } from '../../src/crypto/checkpoint.ts';
import { type NoteVerifier, parseNote } from '../../src/crypto/signed-note.ts';
import { decodeHash } from '../../src/crypto/tree.ts';
import { isConsistent, type TreeHead } from '../../src/crypto/tree-proof.ts';
import type { Scope } from './directory.ts';
import { startHttpReceiver } from './log-receivers.ts';

const NAME = 'witness.example/w1';
const EMPTY: TreeHead = { size: 0, root: createHash('sha256').digest('latin1') };

export interface Witness {
  /** For `--anchor`. */
  readonly anchor: string;
  /** The status of each response, with the old size of the request. */
  readonly answers: (readonly [status: number, old: number])[];
  /** While true, it returns signatures of another text. */
  lies: boolean;
  /** Whether the note has a valid cosignature of this witness. */
  hasCosigned(note: string): boolean;
}

/** The witness knows one log, by its public key. */
export async function startWitness(scope: Scope, log: NoteVerifier): Promise<Witness> {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const key = Buffer.concat([Buffer.from([4]), publicKey.export({ type: 'spki', format: 'der' }).subarray(-32)]);
  const id = createHash('sha256').update(`${NAME}\n`).update(key).digest().subarray(0, 4);
  let latest = EMPTY;

  const respond = (body: string): { status: number; old: number; text: string } => {
    const [request = '', ...rest] = body.split('\n\n');
    const [first = '', ...lines] = request.split('\n');
    const old = Number(/^old (0|[1-9][0-9]*)$/.exec(first)?.[1]);
    const proof = lines.map(decodeHash).filter((hash) => hash !== null);
    const note = rest.join('\n\n');
    const answer = (status: number, text = '') => ({ status, old, text });
    if (Number.isNaN(old) || proof.length !== lines.length || proof.length > 63) return answer(400);
    if (parseNote(note)?.text.split('\n')[0] !== log.name) return answer(404);
    const checkpoint = openCheckpoint(note, log);
    if (checkpoint === null) return answer(403);
    if (old > checkpoint.size) return answer(400);
    if (old !== latest.size) return answer(409, `${latest.size}\n`);
    if (old === checkpoint.size && latest.root !== checkpoint.root) return answer(409, `${latest.size}\n`);
    if (!isConsistent(latest, checkpoint, proof)) return answer(422);
    latest = checkpoint;
    const time = Buffer.alloc(8);
    time.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 1000)));
    const message = messageOf(witness.lies ? 'another text\n' : note.slice(0, note.lastIndexOf('\n\n') + 1), time);
    const signature = Buffer.concat([id, time, sign(null, message, privateKey)]).toString('base64');
    return answer(200, `— ${NAME} ${signature}\n`);
  };
  const port = await startHttpReceiver(scope, ({ url, body }, response) => {
    const { status, old, text } = url === '/add-checkpoint' ? respond(body) : { status: 404, old: 0, text: '' };
    witness.answers.push([status, old]);
    response.writeHead(status, { 'content-type': status === 409 ? 'text/x.tlog.size' : 'text/plain' }).end(text);
  });
  const witness: Witness = {
    anchor: `witness+http://127.0.0.1:${port}/#${encodeURIComponent(`${NAME}+${id.toString('hex')}+${key.toString('base64')}`)}`,
    answers: [],
    lies: false,
    hasCosigned(note) {
      const parsed = parseNote(note);
      const own = parsed?.signatures.find(
        ({ name, signature }) => name === NAME && signature.subarray(0, 4).equals(id),
      );
      if (parsed === null || own === undefined) return false;
      return verify(null, messageOf(parsed.text, own.signature.subarray(4, 12)), publicKey, own.signature.subarray(12));
    },
  };
  return witness;
}

function messageOf(text: string, time: Buffer): Buffer {
  return Buffer.from(`cosignature/v1\ntime ${time.readBigUInt64BE()}\n${text}`);
}

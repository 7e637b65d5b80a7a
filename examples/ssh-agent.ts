/**
 * An agent whose key stays in ssh-agent, or in a device behind it: the library passes a nonce and receives a signature.
 *
 *   ssh-keygen -t ed25519 -f bot -N '' && ssh-add bot && rm bot
 *   scripts/leasehold agent add deploy-bot --public-key bot.pub
 *   node_modules/.bin/node --conditions=leasehold-source examples/ssh-agent.ts deploy-bot bot.pub prod/db/password
 *
 * In the checkout the condition resolves 'leasehold/client' to src/. A project that installed the package does not need
 * it.
 * SOURCE: draft-ietf-sshm-ssh-agent, "Private key operations"; RFC 8709 (Ed25519 keys and signatures of SSH).
 */
import { readFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { Leasehold, LeaseholdError, type Signer } from 'leasehold/client';

const SIGN_REQUEST = 13;
const SIGN_RESPONSE = 14;
const SIGNATURE_BYTES = 64;

/** Signs with the key whose public half is in the line that `ssh-keygen` writes: `ssh-ed25519 AAAA… comment`. */
function sshAgentSigner(publicKeyLine: string, socket: string): Signer {
  const key = Buffer.from(publicKeyLine.split(' ')[1] ?? '', 'base64');
  return async (nonce) => {
    const body = Buffer.concat([Buffer.from([SIGN_REQUEST]), withLength(key), withLength(nonce), Buffer.alloc(4)]);
    const response = await send(socket, withLength(body));
    if (response[0] !== SIGN_RESPONSE)
      throw new Error('ssh-agent does not sign with this key: ssh-add -l lists its keys');
    // The signature comes last, after the name of its type.
    return response.subarray(-SIGNATURE_BYTES);
  };
}

function withLength(bytes: Uint8Array): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

/** Sends the request, and resolves to the response without its length. */
async function send(socket: string, request: Uint8Array): Promise<Buffer> {
  const connection = createConnection(socket);
  try {
    connection.setTimeout(30_000, () => connection.destroy(new Error('ssh-agent does not respond')));
    connection.write(request);
    let received = Buffer.alloc(0);
    for await (const chunk of connection) {
      received = Buffer.concat([received, chunk]);
      if (received.length >= 4 && received.length >= 4 + received.readUInt32BE()) return received.subarray(4);
    }
    throw new Error('ssh-agent closed the connection');
  } finally {
    connection.destroy();
  }
}

const [name, publicKeyFile, path] = process.argv.slice(2);
const { LEASEHOLD_ADDR: address = 'http://127.0.0.1:7700', SSH_AUTH_SOCK: socket } = process.env;
if (name === undefined || publicKeyFile === undefined || path === undefined || socket === undefined) {
  console.error('usage: SSH_AUTH_SOCK=… node ssh-agent.ts AGENT PUBLIC_KEY_FILE PATH');
  process.exit(1);
}
const sign = sshAgentSigner(readFileSync(publicKeyFile, 'utf8'), socket);
const vault = new Leasehold({ address, agent: { name, sign } });
try {
  const { value, lease_id, expires_at } = await vault.credentials.retrieve(path, { ttlSeconds: 60 });
  console.log(`Worked with ${path} (${value}), on a lease until ${expires_at}.`);
  await vault.leases.revoke(lease_id);
} catch (error) {
  process.exitCode = 1;
  console.error(error instanceof LeaseholdError ? `${error.code}: ${error.message}` : String(error));
} finally {
  await vault.logOut();
}

/**
 * Creates the client that the settings describe. INVARIANT: when the address or the token comes from a data directory,
 * each connection proves that its server serves that directory before anything else is sent on it. After a crash the
 * files remain, and another program may listen on the port. This can happen even between two connections of one
 * command.
 */
import { readFileSync, statSync } from 'node:fs';
import { type Agent, type IncomingHttpHeaders, request } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { LeaseholdError } from '../client/errors.ts';
import { fileSigner, Leasehold } from '../client/leasehold.ts';
import { caFetch, directFetch, safeFetch } from '../client/node-fetch.ts';
import { errnoSuffix, UsageError } from '../platform/errors.ts';
import type { OwnServer, Settings } from './settings/settings.ts';

/** More than the number of tries within the longest timeout of an approval. */
const APPROVAL_RETRIES = 1_000_000;

/**
 * With `onApprovalPending` calls wait until an approval is answered or times out; without it, they try once. @throws
 * UsageError
 */
export function connect(settings: Settings, onApprovalPending?: (approvalId: string) => void): Leasehold {
  const { address, identity, ownServer, timeoutSeconds, allowsInsecureHttp } = settings;
  const socket = address.value.startsWith('unix:') ? address.value.slice('unix:'.length) : null;
  const who = identity.value;
  const ca = address.value.startsWith('https:') ? readCa(settings) : null;
  try {
    const proof = ownServer === null ? {} : { setUp: withProof(ownServer) };
    const direct = ownServer === null ? safeFetch : directFetch(proof);
    return new Leasehold({
      address: socket === null ? addressToCall(settings) : 'http://localhost',
      // The client knows which calls take longer by default.
      ...(timeoutSeconds.level === 'default' ? {} : { timeoutMs: Math.round(timeoutSeconds.value * 1000) }),
      insecureHttp: allowsInsecureHttp,
      ...(onApprovalPending === undefined
        ? { approvalRetries: 0 }
        : { approvalRetries: APPROVAL_RETRIES, onApprovalPending }),
      fetch:
        socket !== null ? directFetch({ ...proof, socketPath: socket }) : ca !== null ? caFetch(ca, proof) : direct,
      ...(who.kind === 'agent' ? { agent: { name: who.name, sign: fileSigner(who.keyFile) } } : {}),
      ...(who.kind === 'token' || who.kind === 'session' ? { token: who.token } : {}),
    });
  } catch (error) {
    if (error instanceof LeaseholdError) throw new UsageError(optionMessage(error, settings));
    throw error;
  }
}

/**
 * WHY not the name `localhost` for a data directory's server: it may resolve to another loopback address, where another
 * user listens and relays the proof. With TLS the certificate decides, and it may contain only the name.
 */
function addressToCall({ address, ownServer }: Settings): string {
  return ownServer?.address.startsWith('http:') ? ownServer.address : address.value;
}

const MAX_CA_BYTES = 1024 * 1024;

/** @throws UsageError */
function readCa({ caFile }: Settings): string | null {
  if (caFile === null) return null;
  const { value: file, source } = caFile;
  try {
    const found = statSync(file);
    if (found.isFile() && found.size <= MAX_CA_BYTES) return readFileSync(file, 'latin1');
  } catch (error) {
    throw new UsageError(`${source}: ${file} cannot be read${errnoSuffix(error)}`);
  }
  throw new UsageError(`${source}: ${file} must be a file of at most 1 MiB`);
}

function optionMessage(
  { message, option }: LeaseholdError,
  { address, identity, timeoutSeconds, caFile }: Settings,
): string {
  const from = {
    address: address.source,
    token: identity.source,
    timeoutMs: timeoutSeconds.source,
    ca: caFile?.source,
  };
  const found = Object.entries(from).find(([name]) => name === option);
  if (found === undefined) return message;
  const rule = message.slice(`${option}: `.length);
  return `${found[1]}: ${rule.replace('allow it with insecureHttp', 'allow it with --insecure-http')}`;
}

/** Ends a connection whose server accepts it and never responds. */
const PROOF_TIMEOUT_MS = 30_000;

export function withProof(own: OwnServer): (agent: Agent) => void {
  return (agent) => {
    const connect = agent.createConnection.bind(agent);
    agent.createConnection = (options, callback) => {
      const socket = connect(options);
      if (!socket) throw new Error('the agent creates connections synchronously');
      const { host, port, socketPath } = options;
      const name = host?.includes(':') ? `[${host}]` : host;
      assertOwnServer(own, socket, socketPath ? 'localhost' : `${name}:${port}`).then(
        () => callback?.(null, socket),
        (error: Error) => {
          socket.destroy();
          // WHY the socket too: the type demands one, and Node ignores it after an error.
          callback?.(error, socket);
        },
      );
      return null;
    };
  };
}

/** `host` is the value of the Host header. @throws LeaseholdError, or the connection's error */
async function assertOwnServer(
  { dataDir, address, challengeServer }: OwnServer,
  connection: Duplex,
  host: string,
): Promise<void> {
  connection.on('error', () => undefined);
  const challenge = await challengeServer(dataDir, address);
  if (challenge === null) {
    throw new LeaseholdError(
      'UNREACHABLE',
      `no server has ${dataDir} open, although its address file names ${address}; nothing was sent`,
    );
  }
  const { 'leasehold-proof': proof } = await exchange(connection, host, challenge.nonce);
  if (challenge.isAnsweredBy(typeof proof === 'string' ? proof : null)) return;
  throw new LeaseholdError(
    'INVALID_RESPONSE',
    `the server on ${address} is not the server of ${dataDir}; nothing was sent`,
  );
}

/** Resolves to the headers of the response, once the connection can carry another request. */
function exchange(connection: Duplex, host: string, nonce: string): Promise<IncomingHttpHeaders> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingHttpHeaders>();
  const socket = connection as Socket;
  const call = request({
    createConnection: () => socket,
    path: '/api/v1/health',
    // WHY the header `connection`: Node closes a connection without an agent after the response.
    headers: { host, accept: 'application/json', connection: 'keep-alive', 'leasehold-proof-nonce': nonce },
    signal: AbortSignal.timeout(PROOF_TIMEOUT_MS),
  });
  call.on('response', (response) => {
    response.on('error', reject).resume();
    // ORDER: `close` follows when Node has detached its parser from the socket.
    call.on('close', () => resolve(response.headers));
  });
  call.on('upgrade', (_response, upgraded) => {
    upgraded.destroy();
    resolve({});
  });
  call.on('error', reject);
  call.end();
  // WHY: a caller that has stopped waiting must not be kept alive by a server that never responds.
  socket.unref();
  return promise.finally(() => socket.ref());
}

/**
 * Connections to the server of a data directory. INVARIANT: when the address or the token comes from a data directory,
 * each connection proves that its server serves that directory before anything else is sent on it. After a crash the
 * files remain, and another program may listen on the port. This can happen even between two connections of one
 * command.
 */
import { type Agent, type IncomingHttpHeaders, request } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { LeaseholdError } from '../../client/errors.ts';
import type { OwnService } from './settings.ts';

/** Ends a connection whose server accepts it and never responds. */
const PROOF_TIMEOUT_MS = 30_000;

export function withProof(own: OwnService): (agent: Agent) => void {
  return (agent) => {
    const connect = agent.createConnection.bind(agent);
    agent.createConnection = (options, callback) => {
      const socket = connect(options);
      if (!socket) throw new Error('the agent creates connections synchronously');
      const { host, port, socketPath } = options;
      const name = host?.includes(':') ? `[${host}]` : host;
      assertOwnService(own, socket, socketPath ? 'localhost' : `${name}:${port}`).then(
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
async function assertOwnService(
  { dataDir, address, challengeService }: OwnService,
  connection: Duplex,
  host: string,
): Promise<void> {
  connection.on('error', () => undefined);
  const challenge = await challengeService(dataDir, address);
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

/** The broker's end of the socket that it shares with the service. */
import { performServerHandshake, type ServerHttp2Session } from 'node:http2';
import type { Duplex } from 'node:stream';
import { ConnectionPool, type Resolve } from './connections.ts';
import { Maskings } from './maskings.ts';
import { SESSION_OPTIONS } from './protocol.ts';
import { DEFAULT_TIMEOUTS, type Timeouts } from './upstream.ts';
import { serveUse } from './use.ts';

export interface BrokerOptions {
  readonly timeouts?: Timeouts;
  /** Replaces the system's resolver. */
  readonly resolve?: Resolve;
}

/** Serves uses until the socket closes; then ends them and calls `closed`. */
export function serveBroker(socket: Duplex, closed: () => void, options: BrokerOptions = {}): ServerHttp2Session {
  const pool = new ConnectionPool(options.resolve);
  const session = performServerHandshake(socket, SESSION_OPTIONS);
  const context = { pool, maskings: new Maskings(), timeouts: options.timeouts ?? DEFAULT_TIMEOUTS };
  session.on('stream', (stream) => void serveUse(stream, context));
  // The service is the only peer; an error is followed by the end.
  session.on('error', () => undefined);
  session.on('close', () => {
    pool.close();
    context.maskings.clear();
    closed();
  });
  return session;
}

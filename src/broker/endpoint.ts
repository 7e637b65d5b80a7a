/** The broker's end of the socket that it shares with the service. */
import type { Duplex } from 'node:stream';
import { Channel } from './channel.ts';
import { ConnectionPool, type Resolve } from './connections.ts';
import { Maskings } from './maskings.ts';
import type { Order } from './protocol.ts';
import { Turns } from './turns.ts';
import { DEFAULT_TIMEOUTS, type Timeouts } from './upstream.ts';
import { serveUse } from './use.ts';

export interface BrokerOptions {
  readonly timeouts?: Timeouts;
  readonly resolve?: Resolve;
}

/** Serves uses until the socket closes; then ends them and calls `closed`. */
export function serveBroker(socket: Duplex, closed: () => void, options: BrokerOptions = {}): Channel {
  const pool = new ConnectionPool(options.resolve);
  const shared = { maskings: new Maskings(), turns: new Turns() };
  const context = { pool, ...shared, timeouts: options.timeouts ?? DEFAULT_TIMEOUTS };
  return new Channel(socket, {
    opened(stream, order) {
      serveUse(stream, order as Order, context).catch(() => stream.destroy());
    },
    closed() {
      pool.close();
      context.maskings.clear();
      closed();
    },
  });
}

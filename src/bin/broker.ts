/**
 * The broker's process: makes the requests of brokered use for the server that started it. It has no root key, no
 * database and no data directory, and Node's permission model denies it files, processes and threads.
 */
import { Socket } from 'node:net';
import { setDefaultHighWaterMark } from 'node:stream';
import { serveBroker } from '../broker/broker-server.ts';

const SERVER_FD = 3;

// WHY, as in the server: each waiting chunk of a single byte takes some hundred bytes of memory.
setDefaultHighWaterMark(false, 16 * 1024);
// WHY ignored: a signal to the process group ends the server in order, which needs its open requests. The end of the
// server closes the socket.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
serveBroker(new Socket({ fd: SERVER_FD, readable: true, writable: true }), () => process.exit(0));

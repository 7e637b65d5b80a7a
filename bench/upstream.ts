// The upstream of the uses: answers with 1 KiB of JSON, or with events that contain the time at which they were sent.
// Arguments: the files of its certificate and key. Prints its address.

import { readFileSync } from 'node:fs';
import https from 'node:https';
import type { AddressInfo } from 'node:net';

const [certFile = '', keyFile = ''] = process.argv.slice(2);
const EVENT_INTERVAL_MS = 20;
const BODY = JSON.stringify({ text: 'x'.repeat(1024) });

const options = { cert: readFileSync(certFile), key: readFileSync(keyFile), keepAliveTimeout: 60_000 };
const server = https.createServer(options, (request, response) => {
  request.resume();
  if (request.url !== '/v1/events') {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': BODY.length }).end(BODY);
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  // The monotonic clock of the machine, which all processes share.
  const timer = setInterval(() => response.write(`data: ${process.hrtime.bigint()}\n\n`), EVENT_INTERVAL_MS);
  response.on('close', () => clearInterval(timer));
});
server.listen(0, '127.0.0.1', () => console.log(`https://127.0.0.1:${(server.address() as AddressInfo).port}`));

// The baseline of uses: reads a request, makes another one with node:https, adding a header, and passes the response
// on, without decision, record, redaction or guard. Arguments: the upstream's URL and its certificate. Prints its
// address.

import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { VALUE } from './targets.ts';

const [url = '', certFile = ''] = process.argv.slice(2);
const agent = new https.Agent({ keepAlive: true, ca: readFileSync(certFile) });

const server = http.createServer((request, response) => {
  request.resume();
  const headers = { authorization: `Bearer ${VALUE}` };
  const upstream = https.get(url, { agent, headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
  });
  upstream.on('error', () => response.destroy());
});
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));

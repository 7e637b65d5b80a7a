// Tells by its exit code whether the node in this container is well: 0 where its health is "ok", else 1, with a line that says why.
// For HEALTHCHECK, because the image has no curl. It finds the node by LEASEHOLD_LISTEN, so leave that to the environment.

import { get as getPlain } from 'node:http';
import { get as getSecure } from 'node:https';

const { LEASEHOLD_LISTEN = '127.0.0.1:7700', LEASEHOLD_TLS_CERT } = process.env;
const WITHIN_MS = 3000;

function end(line, code) {
  console.log(line);
  process.exit(code);
}

const options = {
  host: '127.0.0.1',
  port: Number(LEASEHOLD_LISTEN.split(':').at(-1)),
  path: '/api/v1/health',
  timeout: WITHIN_MS,
  // It asks itself, and sends nothing: whose name is on the certificate says nothing here.
  rejectUnauthorized: false,
};
const request = (LEASEHOLD_TLS_CERT === undefined ? getPlain : getSecure)(options, (response) => {
  let text = '';
  response.setEncoding('utf8').on('data', (chunk) => {
    text += chunk;
  });
  response.on('end', () => end(`${response.statusCode} ${text}`, response.statusCode === 200 ? 0 : 1));
});
request.on('timeout', () => end('no answer', 1));
request.on('error', (error) => end(error.message, 1));

// The container's HEALTHCHECK: exits with 0 if the node's health is "ok", otherwise with 1 and a line with the reason.
// WHY not curl: the image has none. The node listens at LEASEHOLD_LISTEN, so set that variable and not --listen.

import { get as getPlain } from 'node:http';
import { get as getSecure } from 'node:https';

const { LEASEHOLD_LISTEN = '127.0.0.1:7700', LEASEHOLD_TLS_CERT } = process.env;
const TIMEOUT_MS = 3000;

function end(line, code) {
  console.log(line);
  process.exit(code);
}

const options = {
  host: '127.0.0.1',
  port: Number(LEASEHOLD_LISTEN.split(':').at(-1)),
  path: '/readyz',
  timeout: TIMEOUT_MS,
  // Not Node's own agent, which takes a proxy from the environment where NODE_USE_ENV_PROXY is set.
  agent: false,
  // The connection stays in the container and carries no secret, and the certificate is not for 127.0.0.1.
  rejectUnauthorized: false,
};
const request = (LEASEHOLD_TLS_CERT === undefined ? getPlain : getSecure)(options, (response) => {
  let text = '';
  response.setEncoding('utf8').on('data', (chunk) => {
    text += chunk;
  });
  response.on('end', () => end(`${response.statusCode} ${text}`, response.statusCode === 200 ? 0 : 1));
});
request.on('timeout', () => end('no response', 1));
request.on('error', (error) => end(error.message, 1));

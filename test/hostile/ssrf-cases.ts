/**
 * Generates requests that try to reach another server than the target, or more of it than one request: by the URL, the
 * target's own origin, redirects, headers and bodies. A seed repeats them.
 */
import type { Dice } from '../kit/dice.ts';
import { words } from './fixture.ts';

/** The servers of a run: the target, and the canary that nothing may reach. */
export interface Places {
  readonly targetPort: number;
  readonly canaryPort: number;
}

/** A use without the credential's path; use-endpoints.ts sends it. */
export interface Call {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface Case {
  readonly call: Call;
  /** What the target answers, if it is reached. */
  readonly redirect: { readonly status: number; readonly headers: Readonly<Record<string, string>> } | null;
  /** Whether the call may be one request to the target. */
  readonly isSendable: boolean;
}

/** Spellings of 127.0.0.1 and of other addresses of this machine that some parser or resolver accepts. */
const OWN_HOSTS = [
  ...words`
    127.0.0.1 127.1 127.0.1 0 0.0.0.0 127.0.0.2 127.255.255.254 2130706433 017700000001 0x7f000001 0x7f.1 0177.0.0.1
    127.0.0.01 127.0.0.1. 127.000.000.001 0x7f.0x0.0x0.0x1 localhost LOCALHOST localhost. ip6-localhost a.localhost
    localhost.localdomain LocalHost [::1] [::] [0:0:0:0:0:0:0:1] [::ffff:127.0.0.1] [::ffff:7f00:1] [::127.0.0.1]
    [::FFFF:7f00:1] [64:ff9b::7f00:1] [2002:7f00:1::] [::ffff:0:7f00:1] [fe80::1%25lo] [::1%25] ::1 [::1 ::1]
    ①②⑦.⓪.⓪.① 127。0。0。1 １２７.0.0.1 ⓛocalhost %6c%6f%63alhost 127.0.0.1%2f 127%2e0%2e0%2e1 169.254.169.254
    100.100.100.200 [fd00:ec2::254] 10.0.0.1 192.168.0.1 metadata.google.internal
  `,
];
const MARKS = [
  ...words`
    @ \\ \\@ # #@ ? ?@ %40 : :@ ; ;@ / // /@ %23@ %00
  `,
  '\t',
];
const BREAKS = ['\r\n', '\n', '\r', '\r\n\r\n', '\r\n ', '%0d%0a', '\u010d\u010a', '\0', '\u2028', '\x0b', '\x85'];
const HOP_NAMES = ['Connection', 'connection', 'Proxy-Connection', 'Keep-Alive', 'TE', 'Trailer', 'Upgrade', 'Via'];
const ROUTING_NAMES = [
  'Host',
  'host',
  ':authority',
  'X-Forwarded-Host',
  'X_Forwarded_Host',
  'Forwarded',
  'X-Host',
  'X-Original-URL',
  'X-Rewrite-URL',
  'X-Original-Host',
  'X-Forwarded-For',
  'X-Real-IP',
  'Proxy-Authorization',
  'Destination',
];
const FRAMING_NAMES = [
  'Content-Length',
  'Transfer-Encoding',
  'content-length',
  'Transfer_Encoding',
  'Expect',
  'Upgrade',
];
const FRAMING_VALUES = [
  '0',
  '5',
  '-1',
  '1e9',
  '0x5',
  '5, 6',
  'chunked',
  'identity, chunked',
  'xchunked',
  '100-continue',
];
const REDIRECTS = [201, 300, 301, 302, 303, 305, 307, 308, 401, 407, 426, 503];
const LINKS = ['location', 'content-location', 'refresh', 'link', 'uri', 'alt-svc', 'x-accel-redirect', 'x-sendfile'];

export const CLASSES = {
  /** The host is another spelling of this machine, on either server's port. */
  spelling(dice: Dice, { targetPort, canaryPort }: Places): Case {
    const port = dice.pick(['', `:${canaryPort}`, `:${targetPort}`, `:0${targetPort}`, `:${targetPort + 65_536}`, ':']);
    const host = dice.pick(OWN_HOSTS);
    const url = `${dice.pick(['https', 'http', 'HTTPS', 'ftp'])}://${host}${port}${path(dice)}`;
    return { call: get(url), redirect: null, isSendable: host === '127.0.0.1' && port === `:${targetPort}` };
  },
  /** A URL of the target of which one part differs. */
  neighbour(dice: Dice, { targetPort, canaryPort }: Places): Case {
    const url = dice.pick([
      `https://127.0.0.1:${canaryPort}/v1/a`,
      `http://127.0.0.1:${canaryPort}/v1/a?b=c`,
      `http://127.0.0.1:${targetPort}/v1/a`,
      `https://127.0.0.2:${targetPort}/v1/a`,
      `https://localhost:${targetPort}/v1/a`,
      `https://[::1]:${canaryPort}/v1/a`,
      `https://127.0.0.1:${targetPort}/v2/${dice.below(100)}`,
      `https://127.0.0.1:${targetPort}/`,
    ]);
    const method = dice.pick(['GET', 'POST', 'HEAD', 'TRACE', 'OPTIONS', 'CONNECT', 'PURGE']);
    return { call: { ...get(url), method }, redirect: null, isSendable: false };
  },
  /** Two authorities in one URL, between which parsers choose differently. */
  authority(dice: Dice, { targetPort, canaryPort }: Places): Case {
    const both = [`127.0.0.1:${targetPort}`, `${dice.pick(OWN_HOSTS)}:${canaryPort}`];
    const [first, second] = dice.chance(0.5) ? both : both.toReversed();
    const start = dice.pick(['https://', 'http://', 'https:/', 'https:', '//', 'https:///', 'https:\\\\', ' https://']);
    const isSendable = start === 'https://' && first === both[0];
    const url = `${start}${first}${dice.pick(MARKS)}${dice.chance(0.3) ? dice.pick(MARKS) : ''}${second}${path(dice)}`;
    return { call: get(url), redirect: null, isSendable };
  },
  /** The target answers with links to the canary. */
  redirect(dice: Dice, { targetPort, canaryPort }: Places): Case {
    const scheme = dice.pick(['http:', 'https:', '', 'HTTP:', 'ftp:', 'file:']);
    const link = `${scheme}//${dice.pick(OWN_HOSTS)}:${canaryPort}${path(dice)}`;
    const names = [dice.pick(LINKS), dice.pick(LINKS)];
    const headers = Object.fromEntries(names.map((name) => [name, link.replaceAll(/[^\x20-\x7e]/g, 'x')]));
    const method = dice.pick(['GET', 'POST', 'PUT', 'DELETE', 'HEAD']);
    const call = { ...get(`https://127.0.0.1:${targetPort}/v1/a`), method, ...(method === 'GET' ? {} : { body: 'x' }) };
    return { call, redirect: { status: dice.pick(REDIRECTS), headers }, isSendable: true };
  },
  /** A second request, or another address of the first, in headers, method or URL. */
  smuggling(dice: Dice, { targetPort, canaryPort }: Places): Case {
    const second = `GET http://127.0.0.1:${canaryPort}/v1/own HTTP/1.1${dice.pick(BREAKS)}Host: 127.0.0.1:${canaryPort}`;
    const text = `a${dice.pick(BREAKS)}${dice.chance(0.5) ? second : 'X-Own: 1'}${dice.pick(BREAKS)}`;
    const url = `https://127.0.0.1:${targetPort}/v1/a`;
    const call = dice.pick<Call>([
      { ...get(url), headers: { 'x-a': text } },
      { ...get(url), headers: { [text]: '1' } },
      { ...get(url), method: text },
      { ...get(url), method: `GET ${second}` },
      get(`${url}${text}`),
      get(`${url}?a=${text}`),
      get(`https://127.0.0.1:${targetPort}${text}/`),
    ]);
    return { call, redirect: null, isSendable: true };
  },
  /** Framing that makes the target read the body, or its end, as another request. */
  framing(dice: Dice, { targetPort, canaryPort }: Places): Case {
    const pairs = Array.from({ length: 1 + dice.below(3) }, () => [
      dice.pick(FRAMING_NAMES),
      dice.pick(FRAMING_VALUES),
    ]);
    const chunk = dice.pick(['0\r\n\r\n', '5\r\nabcde\r\n0\r\n\r\n', '', '\r\n', '0;a=b\r\nX: y\r\n\r\n']);
    const body = `${chunk}GET /v1/own HTTP/1.1\r\nHost: 127.0.0.1:${canaryPort}\r\n\r\n`;
    const method = dice.pick(['POST', 'PUT', 'GET', 'DELETE', 'PATCH']);
    const url = `https://127.0.0.1:${targetPort}/v1/a`;
    return { call: { method, url, headers: Object.fromEntries(pairs), body }, redirect: null, isSendable: true };
  },
  /** Headers of the connection, of proxies, and those that name another host or path. */
  hopByHop(dice: Dice, { targetPort, canaryPort }: Places): Case {
    const own = `127.0.0.1:${canaryPort}`;
    const values = [
      own,
      `http://${own}/v1/own`,
      `host=${own}`,
      'authorization, host',
      'close',
      'upgrade',
      'h2c',
      '/v1/own',
    ];
    const names = Array.from({ length: 1 + dice.below(4) }, () => dice.pick([...HOP_NAMES, ...ROUTING_NAMES]));
    const headers = Object.fromEntries(names.map((name) => [name, dice.pick(values)]));
    return { call: { ...get(`https://127.0.0.1:${targetPort}/v1/a`), headers }, redirect: null, isSendable: true };
  },
} as const;

function get(url: string): Call {
  return { method: 'GET', url, headers: {} };
}

function path(dice: Dice): string {
  return dice.pick(['', '/', '/v1/a', '/v1/a?b=c', '/v1/../a', '/v1/%2e%2e/a', '//a', '/v1/a#b', '/v1/a%00', '/v1\\a']);
}

/**
 * Recognises requests to endpoints that return other secrets. It denies too much rather than too little: servers
 * differ in how they read encodings, letter case, slashes at the end and format suffixes, so each reading counts.
 */
import type { UseRequest } from '../use/target.ts';
import type { MintingEndpoint, ServiceDefinition } from './definition.ts';

const FORMAT_SUFFIX = /\.(?:json|xml|csv|html|txt)$/;
/** A proxy and the server behind it may each decode once. */
const DECODINGS = 2;

/**
 * Whether the response to the request may contain a secret that outlives the lease. `isOwnHost`: whether the host is
 * the service's; on a user's own host, such as GitHub Enterprise Server's, the paths may have a prefix.
 */
export function returnsSecret(service: ServiceDefinition, { method, url }: UseRequest, isOwnHost = true): boolean {
  const plainReadings = readingsOf(url.path);
  const readings = isOwnHost ? plainReadings : plainReadings.flatMap(suffixesOf);
  return service.secretEndpoints.some((endpoint) => {
    if (!hasMethod(endpoint, method)) return false;
    const pattern = segmentsOf(endpoint.path.toLowerCase());
    return readings.some((segments) => matchesSegments(pattern, segments));
  });
}

/** HEAD runs the handler of GET in most frameworks. */
function hasMethod({ methods }: MintingEndpoint, method: string): boolean {
  return methods === null || methods.includes(method) || (method === 'HEAD' && methods.includes('GET'));
}

/** The path as a server may read it: `%2F` as part of a segment, or as a slash after each number of decodings. */
function readingsOf(path: string): string[][] {
  const readings: string[][] = [];
  let text = path;
  for (let times = 0; times <= DECODINGS; times++) {
    const segments = segmentsOf(text);
    readings.push(segments.map((segment) => plain(segment, 0)));
    for (let inner = 1; inner <= DECODINGS - times; inner++) {
      readings.push(segments.map((segment) => plain(segment, inner)));
    }
    text = decoded(text);
  }
  return readings.flatMap((segments) => [segments, withoutFormat(segments)]);
}

const suffixesOf = (segments: readonly string[]): string[][] => segments.map((_, index) => segments.slice(index));

function segmentsOf(path: string): string[] {
  return path.split('/').filter((segment) => segment !== '');
}

/** The segment in lower case, without the parameters that some servers remove. */
function plain(segment: string, decodings: number): string {
  let text = segment;
  for (let times = 0; times < decodings; times++) text = decoded(text);
  return text.replace(/;.*$/s, '').toLowerCase();
}

/** Bytes above ASCII become one character each, which no pattern contains. */
function decoded(text: string): string {
  return text.replaceAll(/%([0-9A-Fa-f]{2})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
}

function withoutFormat(segments: readonly string[]): string[] {
  return segments.map((segment, index) =>
    index === segments.length - 1 ? segment.replace(FORMAT_SUFFIX, '') : segment,
  );
}

function matchesSegments(pattern: readonly string[], segments: readonly string[]): boolean {
  const isOpen = pattern.at(-1) === '**';
  if (isOpen ? segments.length < pattern.length : segments.length !== pattern.length) return false;
  const named = isOpen ? pattern.slice(0, -1) : pattern;
  return named.every((part, index) => matchesSegment(part, segments[index] ?? ''));
}

function matchesSegment(part: string, segment: string): boolean {
  const star = part.indexOf('*');
  if (star === -1) return part === segment;
  const [before, after] = [part.slice(0, star), part.slice(star + 1)];
  return segment.length >= part.length && segment.startsWith(before) && segment.endsWith(after);
}

/** Creates the client that the settings describe. */

import { readFileSync, statSync } from 'node:fs';
import { LeaseholdError } from '../client/errors.ts';
import { fileSigner, Leasehold } from '../client/leasehold.ts';
import { caFetch, directFetch, safeFetch, unixFetch } from '../client/node-fetch.ts';
import { errnoSuffix, UsageError } from '../platform/errors.ts';
import { withProof } from './settings/connection-proof.ts';
import type { Settings } from './settings/settings.ts';

/** More than the number of tries within the longest timeout of an approval. */
const APPROVAL_RETRIES = 1_000_000;

/**
 * With `onApprovalPending` calls wait until an approval is answered or times out; without it, they try once. @throws
 * UsageError
 */
export function connect(settings: Settings, onApprovalPending?: (approvalId: string) => void): Leasehold {
  const { address, identity, ownService, timeoutSeconds, allowsInsecureHttp } = settings;
  const socket = address.value.startsWith('unix:') ? address.value.slice('unix:'.length) : null;
  const who = identity.value;
  const ca = address.value.startsWith('https:') ? readCa(settings) : null;
  try {
    const setUp = ownService === null ? undefined : withProof(ownService);
    const direct = setUp === undefined ? safeFetch : directFetch(setUp);
    return new Leasehold({
      address: socket === null ? addressToCall(settings) : 'http://localhost',
      // The client knows which calls take longer by default.
      ...(timeoutSeconds.level === 'default' ? {} : { timeoutMs: Math.round(timeoutSeconds.value * 1000) }),
      insecureHttp: allowsInsecureHttp,
      ...(onApprovalPending === undefined
        ? { approvalRetries: 0 }
        : { approvalRetries: APPROVAL_RETRIES, onApprovalPending }),
      fetch: socket !== null ? unixFetch(socket, setUp) : ca !== null ? caFetch(ca, setUp) : direct,
      ...(who.kind === 'agent' ? { agent: { name: who.name, sign: fileSigner(who.keyFile) } } : {}),
      ...(who.kind === 'token' || who.kind === 'session' ? { token: who.token } : {}),
    });
  } catch (error) {
    if (error instanceof LeaseholdError) throw new UsageError(optionMessage(error, settings));
    throw error;
  }
}

/**
 * WHY not the name `localhost` for a data directory's server: it may resolve to another loopback address, where another
 * user listens and relays the proof. With TLS the certificate decides, and it may contain only the name.
 */
function addressToCall({ address, ownService }: Settings): string {
  return ownService?.address.startsWith('http:') ? ownService.address : address.value;
}

const MAX_CA_BYTES = 1024 * 1024;

/** @throws UsageError */
function readCa({ caFile }: Settings): string | null {
  if (caFile === null) return null;
  const { value: file, source } = caFile;
  try {
    const found = statSync(file);
    if (found.isFile() && found.size <= MAX_CA_BYTES) return readFileSync(file, 'latin1');
  } catch (error) {
    throw new UsageError(`${source}: ${file} cannot be read${errnoSuffix(error)}`);
  }
  throw new UsageError(`${source}: ${file} must be a file of at most 1 MiB`);
}

function optionMessage(
  { message, option }: LeaseholdError,
  { address, identity, timeoutSeconds, caFile }: Settings,
): string {
  const from = {
    address: address.source,
    token: identity.source,
    timeoutMs: timeoutSeconds.source,
    ca: caFile?.source,
  };
  const found = Object.entries(from).find(([name]) => name === option);
  if (found === undefined) return message;
  const rule = message.slice(`${option}: `.length);
  return `${found[1]}: ${rule.replace('allow it with insecureHttp', 'allow it with --insecure-http')}`;
}

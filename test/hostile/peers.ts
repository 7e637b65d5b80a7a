// Calls of the product to programs that an operator named, as a process with the flags of the server: each exchange
// uses the code that the server uses. WHY not the server: it waits after each failure, on purpose, so it makes too few.
// It prints how the exchanges ended, and fails if one of them threw anything else than the documented error.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ApiError } from '../../src/core/errors.ts';
import type { VaultId } from '../../src/core/keyset.ts';
import { ProviderClient } from '../../src/server/oidc-client.ts';
import { awsKmsSlots } from '../../src/server/slots/aws-kms.ts';
import { SlotKindError } from '../../src/server/slots/slot-kind.ts';
import { transitSlots } from '../../src/server/slots/transit.ts';
import { ReceiverError, WebhookClient } from '../../src/server/webhook-client.ts';

export interface Job {
  readonly kind: 'receiver' | 'oidc' | 'kms' | 'transit';
  readonly url: string;
  readonly exchanges: number;
  readonly directory: string;
}

const VAULT = 'the vault' as VaultId;
const PARALLEL = 24;
const AWS = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'secret', AWS_REGION: 'eu-west-1' };
const issued = { redirectUri: 'http://localhost/console/callback', state: 's', nonce: 'n', verifier: 'v'.repeat(43) };

/** Makes one exchange, or the two of a sign-in. */
function caller({ kind, url, directory }: Job): () => Promise<unknown> {
  if (kind === 'receiver') {
    const client = new WebhookClient({ url: new URL(url), key: new Uint8Array(32), token: null, ca: null });
    const { signal } = new AbortController();
    return () => client.send({ id: 'a', body: '{}', sentAt: 0 }, signal);
  }
  if (kind === 'kms') {
    Object.assign(process.env, AWS);
    const port = awsKmsSlots({ endpoint: url });
    return () => port.open({ key: 'alias/a', ciphertext: 'x' }, VAULT);
  }
  if (kind === 'transit') {
    const tokenFile = join(directory, 'token');
    writeFileSync(tokenFile, 'token');
    const port = transitSlots({ address: url, tokenFile, caFile: null, mount: 'transit' });
    return () => port.open({ key: 'a', ciphertext: 'x' }, VAULT);
  }
  const settings = { issuer: url, clientId: 'leasehold', secretFile: null, label: 'a' };
  return async () => {
    const client = new ProviderClient(settings, () => undefined);
    await client.authorizationUrl(issued);
    return client.redeem(issued, 'code');
  };
}

const isExpected = (error: unknown): boolean =>
  error instanceof ReceiverError || error instanceof SlotKindError || error instanceof ApiError;

async function run(job: Job): Promise<void> {
  const call = caller(job);
  const counts = { done: 0, failed: 0 };
  let left = job.exchanges;
  const work = async (): Promise<void> => {
    while (left-- > 0) {
      try {
        await call();
        counts.done += 1;
      } catch (error) {
        if (!isExpected(error)) throw error;
        counts.failed += 1;
      }
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, work));
  process.stdout.write(JSON.stringify(counts));
}

if (process.argv[2] !== undefined) await run(JSON.parse(process.argv[2]) as Job);

/**
 * A complete agent: it logs in with its key, works with a value while it has a lease, and releases its leases and its
 * session.
 *
 *   node_modules/.bin/node --conditions=leasehold-source examples/agent.ts deploy-bot deploy-bot.pem prod/db/password
 *
 * In the checkout the condition resolves 'leasehold/client' to src/. A project that installed the package does not need
 * it.
 */
import { fileSigner, Leasehold, LeaseholdError, type Secret } from 'leasehold/client';

const [name, keyFile, path] = process.argv.slice(2);
if (name === undefined || keyFile === undefined || path === undefined) {
  console.error('usage: node agent.ts AGENT KEY_FILE PATH');
  process.exit(1);
}

// Ctrl-C aborts the request in flight; the leases are released in any case.
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stop.abort(new Error(`stopped by ${signal}`)));
const { signal } = stop;

const vault = new Leasehold({
  address: process.env['LEASEHOLD_ADDR'] ?? 'http://127.0.0.1:7700',
  agent: { name, sign: fileSigner(keyFile) },
  cache: 10,
});

/** A placeholder for the agent's task. Only this function reveals the value. */
async function work(task: number, password: Secret): Promise<void> {
  const key = await crypto.subtle.importKey(
    'raw',
    new TextEncoder().encode(password.reveal()),
    { name: 'HMAC', hash: 'SHA-256' },
    false,
    ['sign'],
  );
  await crypto.subtle.sign('HMAC', key, new TextEncoder().encode(`task ${task}`));
  console.log(`Task ${task} is done, with ${path} (${password}).`);
}

const leases = new Set<string>();
try {
  for (const task of [1, 2, 3]) {
    // The cache returns the same lease until it ends.
    const { value, lease_id } = await vault.credentials.retrieve(path, { ttlSeconds: 60, signal });
    leases.add(lease_id);
    await work(task, value);
  }
  for (const leaseId of leases) {
    const { expires_at, status } = await vault.leases.renew(leaseId, { signal });
    console.log(`The lease is ${status} until ${expires_at}.`);
  }
} catch (error) {
  process.exitCode = 1;
  if (error === signal.reason) console.error(String(error));
  else if (error instanceof LeaseholdError && error.code === 'ACCESS_DENIED') {
    console.error(`${name} may not retrieve ${path}. The audit log records the request as ${error.requestId}.`);
  } else if (error instanceof LeaseholdError) console.error(`${error.code}: ${error.message}`);
  else throw error;
} finally {
  const soon = { signal: AbortSignal.timeout(3000) };
  await Promise.allSettled([...leases].map((leaseId) => vault.leases.revoke(leaseId, soon)));
  await vault.logOut(soon).catch(() => undefined);
}

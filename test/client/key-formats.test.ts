/** Keys as openssl and ssh-keygen write them give the same signatures; the reason why a key is unusable is reported. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { keySigner, Leasehold } from '../../src/client/leasehold.ts';
import { newHome } from '../kit/command.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { startTestService } from '../kit/service.ts';

const KEYGEN = 'ssh-keygen';

function sshKey(directory: string, name: string, ...words: string[]): string {
  const file = join(directory, name);
  execFileSync(KEYGEN, ['-q', '-f', file, ...(words.length === 0 ? ['-t', 'ed25519', '-N', ''] : words)]);
  return file;
}

test('an OpenSSH key registers an agent, and the agent logs in with it', async (t) => {
  const service = await startTestService(t);
  const home = newHome(t, { LEASEHOLD_ADDR: service.address });
  const file = sshKey(home.path, 'bot');
  const environment = { LEASEHOLD_TOKEN: service.adminToken };
  const added = await home.leasehold(['agent', 'add', 'bot', '--public-key', file], { environment });
  assert.equal(added.code, 0, added.stderr);
  const who = await home.leasehold(['whoami', '--agent', 'bot', '--key-file', file, '--field', 'name']);
  assert.equal(who.stdout, 'agent:bot\n', who.stderr);
  const sign = keySigner(readFileSync(file, 'utf8'));
  const vault = new Leasehold({ address: service.address, agent: { name: 'bot', sign } });
  assert.equal((await vault.logIn()).agent_name, 'bot');
});

test('an unusable key is rejected with its reason and without its content', async (t) => {
  const directory = temporaryDirectory(t);
  const plain = readFileSync(sshKey(directory, 'plain'), 'utf8');
  const withPassphrase = sshKey(directory, 'locked', '-t', 'ed25519', '-N', 'a passphrase');
  const ecdsa = sshKey(directory, 'ecdsa', '-t', 'ecdsa', '-N', '');
  const lines = plain.split('\n');
  const cut = [...lines.slice(0, 3), ...lines.slice(-2)].join('\n');
  const sign = (text: string) => async () => keySigner(text)(new Uint8Array(32));
  for (const [text, rule] of [
    [readFileSync(withPassphrase, 'utf8'), /has a passphrase; use ssh-agent, or remove it with ssh-keygen -p/],
    [readFileSync(ecdsa, 'utf8'), /is not an Ed25519 key/],
    [cut, /is damaged/],
    [plain.replace('OPENSSH', 'RSA').replace('OPENSSH', 'RSA'), /must be PKCS#8 in PEM or an OpenSSH key/],
  ] as const) {
    await assert.rejects(sign(text), { code: 'BAD_KEY', message: rule });
  }
});

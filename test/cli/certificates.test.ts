// The command against a service whose certificate a private authority issued: by flag, variable and profile.

import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeCertificate } from '../kit/certificate.ts';
import { newHome } from '../kit/command.ts';
import { startTestService } from '../kit/service.ts';

test('the authority is named by flag, variable or the user’s profile; without it the error mentions the certificate', async (t) => {
  const certificate = makeCertificate(t);
  const { address, adminToken } = await startTestService(t, certificate.flags);
  const home = newHome(t, { LEASEHOLD_ADDR: address, LEASEHOLD_TOKEN: adminToken });
  const without = await home.leasehold(['list']);
  assert.equal(without.code, 2);
  assert.match(without.stderr, /^leasehold: the certificate of https:\S+ is not trusted/);
  assert.match(without.stderr, /--ca-file FILE or set LEASEHOLD_CA_FILE/);
  assert.doesNotMatch(without.stderr, /does the service run there/i);

  const ca = certificate.certFile;
  assert.equal((await home.leasehold(['list', '--ca-file', ca])).code, 0);
  assert.equal((await home.leasehold(['list'], { environment: { LEASEHOLD_CA_FILE: ca } })).code, 0);
  const config = join(home.path, '.config/leasehold');
  mkdirSync(config, { recursive: true });
  copyFileSync(ca, join(config, 'ca.pem'));
  writeFileSync(join(config, 'config.toml'), `[profiles.p]\naddress = "${address}"\nca_file = "ca.pem"\n`);
  const doctor = await home.leasehold(['doctor', '--profile', 'p']);
  assert.equal(doctor.code, 0, doctor.stdout + doctor.stderr);
  assert.match(doctor.stdout, /^certificate authority +ok +\S+ca\.pem, from ~\/\.config\S+ \[profiles\.p\], ca_file$/m);

  const other = await home.leasehold(['list', '--ca-file', makeCertificate(t).certFile]);
  assert.equal(other.code, 2);
  assert.match(other.stderr, /Only the certificate authorities in \S+cert\.pem are trusted \(--ca-file\)/);
});

test('an unusable authority file exits with 1, and a project’s file must not name one', async (t) => {
  const home = newHome(t, { LEASEHOLD_ADDR: 'https://127.0.0.1:9', LEASEHOLD_TOKEN: 'lha_0123456789abcdef' });
  const nowhere = await home.leasehold(['list', '--ca-file', 'nowhere.pem']);
  assert.equal(nowhere.code, 1);
  assert.match(nowhere.stderr, /--ca-file: \S+nowhere\.pem cannot be read \(ENOENT\)/);
  writeFileSync(join(home.path, 'text.pem'), 'no certificate');
  const text = await home.leasehold(['list', '--ca-file', 'text.pem']);
  assert.deepEqual([text.code, text.stderr], [1, 'leasehold: --ca-file: must be one or more certificates in PEM.\n']);
  writeFileSync(join(home.path, 'leasehold.toml'), 'ca_file = "ca.pem"\n');
  assert.match((await home.leasehold(['list'])).stderr, /ca_file does not belong in a committed file/);
});

// Environment variables: a misspelt one is an error; variables of other programs are accepted.

import assert from 'node:assert/strict';
import { globSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { rejectUnknownVariables } from '../../src/flags/variables.ts';
import { UsageError } from '../../src/platform/errors.ts';
import { readConfiguration } from '../../src/server/configuration.ts';
import { SERVER_FLAGS } from '../../src/server/flag-table.ts';
import { ROOT } from '../conventions/source.ts';

/** Empty if the variable is accepted. */
function refusal(name: string): string {
  try {
    readConfiguration([], { [name]: 's3cret' });
    return '';
  } catch (error) {
    assert.ok(error instanceof UsageError);
    return error.message;
  }
}

test('the error for a misspelt variable names the nearest one, and never repeats its value', () => {
  assert.equal(
    refusal('LEASEHOLD_ADMIN_RETRIEV'),
    'LEASEHOLD_ADMIN_RETRIEV is not a setting. Did you mean LEASEHOLD_ADMIN_RETRIEVE?',
  );
  assert.equal(refusal('LEASEHOLD_LISTENS'), 'LEASEHOLD_LISTENS is not a setting. Did you mean LEASEHOLD_LISTEN?');
  for (const name of ['LEASEHOLD_NONSENSE', 'LEASEHOLD_', 'LEASEHOLD_PORT', 'LEASEHOLD_listen']) {
    assert.match(refusal(name), new RegExp(`^${name} is not a setting\\. .+[.?]$`));
    assert.equal(refusal(name).includes('s3cret'), false);
  }
  assert.equal(refusal('LEASEHOLDERS'), '');
});

test('variables that Kubernetes sets for a Service of this name are accepted', () => {
  const address = 'tcp://10.0.0.1:7700';
  readConfiguration([], {
    LEASEHOLD_SERVICE_HOST: '10.0.0.1',
    LEASEHOLD_SERVICE_PORT: '7700',
    LEASEHOLD_SERVICE_PORT_HTTP: '7700',
    LEASEHOLD_PORT: address,
    LEASEHOLD_PORT_7700_TCP: address,
    LEASEHOLD_PORT_7700_TCP_PROTO: 'tcp',
    LEASEHOLD_PORT_7700_TCP_PORT: '7700',
    LEASEHOLD_PORT_7700_TCP_ADDR: '10.0.0.1',
  });
});

test('every variable that sources and pages name is known', () => {
  const found = globSync(['src/**/*.ts', 'scripts/*', 'deploy/**/*', 'docs/*.md', 'README.md'], { cwd: ROOT });
  const files = found.map((name) => join(ROOT, name)).filter((file) => statSync(file).isFile());
  const text = files.map((file) => readFileSync(file, 'utf8')).join('\n');
  // Misspelt examples, and variables of other programs.
  const names = new Set(text.match(/\bLEASEHOLD_[A-Z][A-Z_]*[A-Z]\b/g)).difference(
    new Set(['LEASEHOLD_ADMIN_RETRIEV']),
  );
  assert.ok(names.size > 15);
  for (const name of names) rejectUnknownVariables({ [name]: '' }, SERVER_FLAGS);
});

// Policy files: their fields, and errors that name file, field and rule without quoting the content.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { stringify as toToml } from 'smol-toml';
import { stringify as toYaml } from 'yaml';
import { parseNotation, readPolicyDirectory, readPolicyFile } from '../../src/cli/policy/policy-files.ts';
import type { Terminal } from '../../src/cli/terminal.ts';
import { wireNames } from '../../src/engine/field.ts';
import { Policy } from '../../src/vault/policies/policy.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { anyText, runs } from '../kit/property.ts';
import { policySets } from './random-policies.ts';

const GOOD = { principal: 'agent:ci', resources: ['ci/*'], actions: ['retrieve'], max_ttl: 60 };
const NAMES = wireNames(Policy.fields).join(', ');
const GOOD_TOML = toToml(GOOD);

const question = (folder: string, input = '') => ({
  terminal: { workingDirectory: folder, stdin: Readable.from([Buffer.from(input)]) as unknown } as Terminal,
  signal: new AbortController().signal,
});
const readDirectory = (folder: string) => readPolicyDirectory(question('.').terminal, folder);
const readText = (text: string, name: string) => readPolicyFile(question('.', text), '-', name);

function folderOf(scope: TestContext, files: Readonly<Record<string, string>>): string {
  const folder = temporaryDirectory(scope);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

/** The error for a directory of policies; each line is a problem. */
async function problemsOf(scope: TestContext, files: Readonly<Record<string, string>>): Promise<string[]> {
  const folder = folderOf(scope, files);
  const failed = await readDirectory(folder).then(
    () => ({ message: '' }),
    (error: Error) => error,
  );
  return failed.message
    .replaceAll(`${folder}/`, '')
    .split('\n')
    .filter((line) => !/^\d+ problems$/.test(line));
}

test('a policy in TOML, JSON of any layout and YAML is the same', async (t) => {
  await fc.assert(
    fc.asyncProperty(policySets, async (drafts) => {
      for (const draft of drafts) {
        const fields = { ...Policy.toInput(draft), created_at: '2026-01-01T00:00:00.000Z' };
        const texts = [toYaml(fields), ...[undefined, 2, '\t'].map((space) => JSON.stringify(fields, null, space))];
        for (const text of texts) assert.deepEqual(await readText(text, draft.name), draft);
        for (const text of texts.slice(1)) assert.deepEqual(await parseNotation(text, 'json'), { value: fields });
        const { value } = (await parseNotation(toToml(fields), 'toml')) as { value: object };
        assert.deepEqual({ ...value }, fields);
      }
    }),
    runs(10, 60),
  );
  const folder = folderOf(t, {
    'a.toml': GOOD_TOML,
    'b.b.json': JSON.stringify(GOOD),
    'c.yaml': toYaml({ ...GOOD, name: 'c' }),
  });
  const read = await readDirectory(folder);
  assert.deepEqual(
    read.map(({ file, draft }) => [file, draft.name, draft.maxTtlSeconds]),
    [
      ['a.toml', 'a', 60],
      ['b.b.json', 'b.b', 60],
      ['c.yaml', 'c', 60],
    ],
  );
});

test('all problems are reported together: the file, the field, the rule, and the likely intent', async (t) => {
  const toml = (lines: string): string => `${lines}\n`;
  assert.deepEqual(
    await problemsOf(t, {
      'good.toml': GOOD_TOML,
      'misspelt.toml': toml('principle = "agent:ci"\nresource = ["a"]\nactions = ["retrieve"]\nttl = 5\ncolour = 1'),
      'kinds.toml': toml(
        'principal = 1\nresources = "a"\nactions = ["retrieve", 2, "retreive", "fly"]\nmax_ttl = "5 minutes"',
      ),
      'rules.toml': toml('principal = "ci"\nresources = ["a", "a/*/b", "/a"]\nactions = []\nmax_ttl = 0.5'),
      'named.toml': `name = "other"\n${GOOD_TOML}`,
      'null.json': JSON.stringify({ ...GOOD, approval: null, limits: null, max_ttl: null }),
      'rule.json': JSON.stringify({ ...GOOD, approval: { for: 'use' } }),
      'list.json': '[]',
      'null.yaml': '',
    }),
    [
      'kinds.toml: max_ttl: must be a whole number of seconds, or a duration such as 15m',
      'kinds.toml: principal: must be a string',
      'kinds.toml: resources: must be an array of 1 to 256 patterns',
      'kinds.toml: actions[1]: must be one of retrieve, use, list, store, delete',
      'kinds.toml: actions[2]: must be one of retrieve, use, list, store, delete; did you mean retrieve?',
      'kinds.toml: actions[3]: must be one of retrieve, use, list, store, delete',
      `list.json: must contain the fields of a policy: ${NAMES}`,
      'misspelt.toml: principle: unknown field; did you mean principal?',
      'misspelt.toml: resource: unknown field; did you mean resources?',
      `misspelt.toml: ttl: unknown field; must be one of ${NAMES}`,
      `misspelt.toml: colour: unknown field; must be one of ${NAMES}`,
      'misspelt.toml: principal: is required',
      'misspelt.toml: resources: is required',
      'named.toml: name: must be named, the name of the file, or omitted',
      'null.json: max_ttl: must be a whole number of seconds, or a duration such as 15m',
      'null.json: limits: must be an object with one or more of uses_per_hour, bytes_per_hour, concurrent',
      'null.json: approval: must be an object with for, and optionally each, scope, quorum, timeout',
      `null.yaml: must contain the fields of a policy: ${NAMES}`,
      "rule.json: approval.for: must be one of the policy's actions",
      'rules.toml: principal: must be agent:<name>, agent:<prefix>* or agent:*, or the same with operator:',
      'rules.toml: resources[1]: * is allowed only as the whole pattern, or at the end after /',
      "rules.toml: resources[2]: a pattern's path must not begin or end with /, nor contain //",
      'rules.toml: actions: must be an array of 1 or more actions',
      'rules.toml: max_ttl: must be a whole number of seconds, 1 to 31536000',
    ],
  );
});

test('input that parsers could read differently is rejected: duplicates, aliases, tags, two documents', async (t) => {
  const rest = 'resources: [a]\nactions: [list]\n';
  assert.deepEqual(
    await problemsOf(t, {
      'a.toml': `${GOOD_TOML}\nmax_ttl = 3600\n`,
      'b.json': '{"principal":"agent:a",\n"max_ttl":1,"max\\u005fttl":9}',
      'c.yaml': `principal: agent:a\n${rest}principal: agent:*\n`,
      'd.yaml': `principal: &who agent:a\nname: *who\n${rest}`,
      'e.yaml': `principal: !!binary YWdlbnQ6YQ==\n${rest}`,
      'f.yaml': `principal: agent:a\n${rest}---\nprincipal: agent:*\n`,
      'g.yaml': `<<: {principal: agent:a}\n${rest}`,
      'h.yaml': `%YAML 1.1\n---\nprincipal: agent:a\nmax_ttl: 1_000\n${rest}`,
      'i.json': '{"__proto__":{"principal":"agent:*"}}',
      'j.toml': '__proto__ = 1\n',
      'k.yaml': `[${'['.repeat(50_000)}`,
      'l.json': `{"a":${'['.repeat(50_000)}${']'.repeat(50_000)}}`,
      'm.yaml': `a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\nd: [*c,*c]\n`,
    }),
    [
      'a.toml:6: has a duplicate field',
      'b.json:2: has a duplicate field',
      'c.yaml:4: has a duplicate field',
      'd.yaml: has an alias; write the value instead',
      'e.yaml:1: has a tag; remove it',
      'f.yaml:4: contains several documents; write one policy in each file',
      `g.yaml: a field: unknown field; must be one of ${NAMES}`,
      'g.yaml: principal: is required',
      'h.yaml: max_ttl: must be a whole number of seconds, or a duration such as 15m',
      `i.json: __proto__: unknown field; must be one of ${NAMES}`,
      'i.json: principal: is required',
      'i.json: resources: is required',
      'i.json: actions: is required',
      'j.toml:1: is not TOML',
      'k.yaml: is nested too deeply',
      'l.json: contains JSON that a policy does not need',
      'm.yaml: has an alias; write the value instead',
    ],
  );
});

test('no message quotes the content of a file', async (t) => {
  const secret = 'hunter2hunter2';
  const files = {
    'a.toml': `password = ${secret}\n`,
    'b.json': `{"password": ${secret}}`,
    'c.yaml': `password: "${secret}\n`,
    'd.toml': `principal = "${secret}"\nresources = ["${secret}/*/x"]\nactions = ["${secret}"]\nmax_ttl = "${secret}"`,
    'e.json': JSON.stringify({ [`a ${secret}`]: 1, ...GOOD }),
    'f.yaml': `name: ${secret}\n${toYaml(GOOD)}`,
    'g.yaml': `a: !${secret} b\nc: *${secret}\n`,
  };
  const said = (await problemsOf(t, files)).join('\n');
  assert.equal(said.includes(secret), false, said);
  for (const file of Object.keys(files)) assert.ok(said.includes(file), file);
});

test('any file is a policy or a problem, and never a crash', async () => {
  await fc.assert(
    fc.asyncProperty(anyText(60), fc.constantFrom('toml', 'json', 'yaml'), async (text, notation) => {
      const parsed = await parseNotation(text, notation);
      assert.ok('value' in parsed || typeof parsed.problem === 'string');
    }),
    runs(30, 400),
  );
  const anyJson = fc.jsonValue().map((value) => JSON.stringify(value));
  await fc.assert(
    fc.asyncProperty(anyJson, async (text) => {
      await readText(text, 'n').then(
        () => assert.fail('it took anything'),
        (error: Error) => assert.equal(error.constructor.name, 'UsageError', text),
      );
    }),
    runs(20, 200),
  );
});

test('hidden files and documentation are skipped; any other file must be a policy', async (t) => {
  const others = { '.gitkeep': '', '.prod.toml.swp': 'x', 'README.md': '# Policies', 'expected.txt': 'allow' };
  const folder = folderOf(t, { ...others, 'a.toml': GOOD_TOML });
  assert.deepEqual(
    (await readDirectory(folder)).map(({ file }) => file),
    ['a.toml'],
  );
  assert.deepEqual(
    await problemsOf(t, {
      'a.toml': GOOD_TOML,
      'a.json': JSON.stringify(GOOD),
      'b.ymal': '',
      'c.yml': '',
      'd.toml~': '',
      e: '',
      '-f.toml': GOOD_TOML,
      'big.toml': `#${'x'.repeat(256 * 1024)}`,
    }).then((lines) => lines.map((line) => line.replace(/must end in.*?(;|$)/, '…$1'))),
    [
      '-f.toml: the name of the file: must be 1 to 128 characters of A-Z a-z 0-9 . _ - and begin with a letter or digit',
      'b.ymal: a policy file …; did you mean .yaml?',
      'big.toml: must be at most 256 KiB',
      'c.yml: a policy file …; did you mean .yaml?',
      'd.toml~: a policy file …; did you mean .toml?',
      'e: a policy file …',
      'a.toml: has the same name as a.json',
    ],
  );
});

test('links are followed within the directory, as mounted volumes have them, and not outside of it', async (t) => {
  const outside = folderOf(t, { 'x.toml': GOOD_TOML });
  const folder = folderOf(t, { 'a.toml': GOOD_TOML });
  mkdirSync(join(folder, '..version1'));
  writeFileSync(join(folder, '..version1/b.toml'), GOOD_TOML);
  symlinkSync('..version1', join(folder, '..data'));
  symlinkSync('..data/b.toml', join(folder, 'b.toml'));
  assert.deepEqual(
    (await readDirectory(folder)).map(({ file }) => file),
    ['a.toml', 'b.toml'],
  );
  symlinkSync(join(outside, 'x.toml'), join(folder, 'c.toml'));
  symlinkSync('nowhere.toml', join(folder, 'd.toml'));
  symlinkSync('.', join(folder, 'e.toml'));
  symlinkSync('a.toml', join(folder, 'f.yaml'));
  mkdirSync(join(folder, 'more'));
  const server = createServer().listen(join(folder, 'g.toml'));
  t.after(() => server.close());
  await once(server, 'listening');
  writeFileSync(join(folder, 'h.toml'), Buffer.from([0xff, 0xfe]));
  await assert.rejects(readDirectory(folder), ({ message }: Error) => {
    assert.deepEqual(message.replaceAll(`${folder}/`, '').split('\n').slice(1), [
      'c.toml: is a link that leaves the directory',
      'd.toml: is a link to a missing file',
      'e.toml: is a link that leaves the directory',
      `f.yaml: must contain the fields of a policy: ${NAMES}`,
      'g.toml: must be a file; subdirectories are not read',
      'h.toml: cannot be read as text in UTF-8',
      'more: must be a file; subdirectories are not read',
    ]);
    return true;
  });
});

test('a directory that is empty, missing or not a directory is rejected: with --prune it would delete all policies', async (t) => {
  const folder = folderOf(t, { 'README.md': '' });
  await assert.rejects(readDirectory(folder), /contains no policy files/);
  await assert.rejects(readDirectory(join(folder, 'missing')), /ENOENT/);
  await assert.rejects(readDirectory(join(folder, 'README.md')), /must be a directory/);
});

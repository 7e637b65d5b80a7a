// The form of a policy: its texts become a draft, and every problem is shown where it is.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { check, emptyFields, type FormFields, toFormFields } from '../../console/src/components/resource-form.ts';
import { Policy } from '../../src/vault/policies/policy.ts';

const GIVEN: FormFields = {
  ...emptyFields(Policy.fields),
  name: 'p',
  principal: 'agent:a',
  resources: 'prod/*\n\n  stage/db ',
  actions: ['use', 'retrieve'],
};
const problemsOf = (changes: FormFields) => check(Policy, { ...GIVEN, ...changes }).problems;

test('texts become a draft: lines are patterns, and what is empty is not given', () => {
  const { draft, problems, acrossFields } = check(Policy, { ...GIVEN, 'limits.concurrent': '  ' });
  assert.deepEqual([problems, acrossFields], [{}, null]);
  assert.deepEqual(draft === null ? null : Policy.toInput(draft), {
    name: 'p',
    principal: 'agent:a',
    resources: ['prod/*', 'stage/db'],
    actions: ['retrieve', 'use'],
    max_ttl: 300,
  });
  const limited = check(Policy, { ...GIVEN, 'limits.concurrent': '3', 'approval.for': 'use' }).draft;
  assert.deepEqual(limited?.limits, { usesPerHour: null, bytesPerHour: null, concurrent: 3 });
  assert.deepEqual(limited.approval, { for: 'use', each: 'request', scope: 'once', quorum: 1, timeout: 300 });
  assert.deepEqual(check(Policy, toFormFields(Policy, limited)).draft, limited);
});

test('each field has its own problem, and one does not hide another', () => {
  assert.deepEqual(problemsOf({ name: '', principal: 'bot', resources: ' ', actions: [], max_ttl: '5m' }), {
    name: 'name: must be 1 to 128 characters of A-Z a-z 0-9 . _ - and begin with a letter or digit',
    principal: 'principal: must be agent:<name>, agent:<prefix>* or agent:*, or the same with operator:',
    resources: 'resources: must have one or more patterns, one on each line',
    actions: 'actions: choose one or more',
    max_ttl: 'max_ttl: must be a whole number of seconds, 1 to 31536000',
  });
  assert.deepEqual(Object.keys(problemsOf({ 'limits.uses_per_hour': 'x', 'approval.for': 'use' })), ['limits']);
  assert.match(problemsOf({ resources: 'a\nb//c' })['resources'] ?? '', /^line 2: /);
  assert.match(problemsOf({ 'approval.for': 'retrieve', 'approval.each': 'host' })['approval'] ?? '', /left out for/);
});

test('a rule across fields is no problem of one of them, so that it is shown whatever was touched', () => {
  const { draft, problems, acrossFields } = check(Policy, {
    ...GIVEN,
    actions: ['retrieve'],
    'limits.concurrent': '3',
  });
  assert.deepEqual([draft, problems], [null, {}]);
  assert.equal(acrossFields, 'limits: is only for policies with the action use');
});

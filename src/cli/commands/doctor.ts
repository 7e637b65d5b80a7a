/** `leasehold doctor`: prints the settings in effect and their sources, and checks whether they work. */
import { statSync } from 'node:fs';
import { LeaseholdError } from '../../client/errors.ts';
import type { Leasehold } from '../../client/leasehold.ts';
import { toggle } from '../../flags/flag.ts';
import { isPrivate } from '../../platform/private-files.ts';
import { readVersion } from '../../platform/version.ts';
import { defineCommand, type Invocation } from '../command.ts';
import { type CheckResult, checkSdks, ok, warning, wrong } from '../doctor/sdk-checks.ts';
import { EXIT } from '../errors.ts';
import { withVerificationProgress } from '../progress.ts';
import { loginsPath } from '../settings/identity.ts';
import { userDirsOf } from '../settings/resolve.ts';
import { titleOf } from '../settings/settings.ts';
import { identify } from './sessions.ts';

const MAX_CLOCK_DIFFERENCE_MS = 30_000;

export const doctor = defineCommand({
  name: 'doctor',
  about: [
    'The checks named after SDKs and their variables find what keeps an SDK from working with a base URL of the vault: a certificate that it does not trust, a proxy variable that captures the address, or a base-URL variable that points elsewhere.',
    'With --state, the administrator also has the server verify the log and check all state against it: each agent, policy, credential, set of targets and session against the newest entry about it. With --values it also decrypts every value. A row is named with what is wrong: "altered" has an invalid MAC, "not as recorded" was replayed or rolled back, "missing" was removed outside the server, "value unreadable" does not authenticate.',
    'The exit code is 2 if a check fails; warnings do not change it.',
  ],
  flags: {
    state: toggle('check all state of the vault against its log'),
    values: toggle('also decrypt every value; implies --state'),
  },
  async run(invocation, { state, values }) {
    const findings = [
      ...settingsOf(invocation),
      ...filesOf(invocation),
      ...(await serverOf(invocation)),
      ...(state || values ? await stateOf(invocation, values) : []),
      ...(await checkSdks(invocation)),
    ];
    await invocation.output.records(findings, ['check', 'result', 'found'], null);
    return findings.some(({ result }) => result === 'wrong') ? EXIT.ERROR : EXIT.OK;
  },
});

async function stateOf(invocation: Invocation, values: boolean): Promise<CheckResult[]> {
  try {
    return await checkState(invocation.connect(), invocation, values);
  } catch (error) {
    if (!(error instanceof LeaseholdError)) throw error;
    return [wrong('state', `${error.message} (${error.code})`)];
  }
}

function settingsOf({ settings }: Invocation): CheckResult[] {
  const { address, identity, dataDir, caFile, format, timeoutSeconds, profile } = settings;
  const who = identity.value;
  const name = who.kind === 'agent' || who.kind === 'session' ? titleOf(who.name) : who.kind;
  return [
    ok('version', `leasehold ${readVersion()}, Node ${process.versions.node}`),
    ok('address', `${address.value}, from ${address.source}`),
    who.kind === 'anonymous'
      ? warning('identity', 'none: no token or agent found')
      : ok('identity', `${name}, from ${identity.source}`),
    ok('data directory', `${dataDir.value}, from ${dataDir.source}`),
    ...(caFile === null ? [] : [ok('certificate authority', `${caFile.value}, from ${caFile.source}`)]),
    ok('output', `${format.value}, from ${format.source}`),
    ok('timeout', `${timeoutSeconds.value} s, from ${timeoutSeconds.source}`),
    ...(profile === null ? [] : [ok('profile', `${profile.value}, from ${profile.source}`)]),
  ];
}

function filesOf({ settings, terminal }: Invocation): CheckResult[] {
  const who = settings.identity.value;
  const keyFile =
    who.kind === 'agent'
      ? [checkMode('key file', who.keyFile) ?? wrong('key file', `${who.keyFile} does not exist`)]
      : [];
  const logins = checkMode('logins', loginsPath(userDirsOf(terminal)));
  return logins === null ? keyFile : [...keyFile, logins];
}

function checkMode(check: string, file: string): CheckResult | null {
  const found = statSync(file, { throwIfNoEntry: false });
  if (found === undefined) return null;
  if (isPrivate(found)) return ok(check, file);
  return warning(check, `${file} is accessible to other users: run chmod 600 on it`);
}

async function serverOf(invocation: Invocation): Promise<CheckResult[]> {
  const { settings, signal } = invocation;
  const findings: CheckResult[] = [];
  const vault = invocation.connect(true);
  let check = 'server';
  try {
    const startedAt = performance.now();
    const { status } = await vault.health({ signal });
    findings.push(ok(check, `${status}, responded in ${Math.round(performance.now() - startedAt)} ms`));
    const difference = await vault.clockDifference({ signal });
    const isFar = Math.abs(difference) > MAX_CLOCK_DIFFERENCE_MS;
    if (isFar) findings.push(warning('clock', `differs from the server by ${Math.round(difference / 1000)} s`));
    else findings.push(ok('clock', 'agrees with the server'));
    if (settings.identity.value.kind === 'anonymous') return findings;
    check = 'login';
    const { name, expiresAt } = await identify(vault, signal);
    findings.push(ok(check, `${name}${expiresAt === null ? '' : `, session until ${expiresAt}`}`));
  } catch (error) {
    if (!(error instanceof LeaseholdError)) throw error;
    const why = error.code === 'AUTH_FAILED' ? 'the agent is not registered, or the key is not its key' : error.message;
    findings.push(wrong(check, `${why} (${error.code})`));
  }
  return findings;
}

/** Verifies the audit log too, because a row is valid only if it matches its newest entry. */
async function checkState({ audit }: Leasehold, invocation: Invocation, values: boolean): Promise<CheckResult[]> {
  const verifying = audit.verify({ state: true, values, signal: invocation.signal });
  const found = await withVerificationProgress(invocation, 'Checking', audit, verifying);
  const log = found.valid ? ok('log', `${found.entries} entries, chain intact`) : wrong('log', found.message);
  const { checked, problem_count, problems } = found.state ?? { checked: 0, problem_count: 0, problems: [] };
  if (problem_count === 0) return [log, ok('state', `${checked} rows, entries and values match the audit log`)];
  const shown = problems.map(({ subject, problem }) => wrong('state', `${subject}: ${problem}`));
  const others = problem_count - problems.length;
  return [log, ...shown, ...(others > 0 ? [wrong('state', `${others} more`)] : [])];
}

/** The subcommands of `target`, the output of targets, and the services of the catalogue as flags. */
import type { Tagged } from '../../client/api-client.ts';
import { LeaseholdError } from '../../client/errors.ts';
import type { CredentialTargets, PutTargetsRequest } from '../../client/types.ts';
import { nearest } from '../../core/operator-text.ts';
import { parsePath } from '../../core/path.ts';
import { ApiError } from '../../engine/errors.ts';
import { type FlagValues, list, parsed, text, toggle, withoutNulls } from '../../flags/flag.ts';
import { UsageError } from '../../platform/errors.ts';
import { quoteWord } from '../../platform/installation.ts';
import { SERVICES, serviceTargets } from '../../vault/catalogue/catalogue.ts';
import type { ServiceDefinition } from '../../vault/catalogue/definition.ts';
import {
  DEFAULT_METHODS,
  type PlacementFields,
  parsePlacement,
  parseTargets,
  type TargetFields,
} from '../../vault/use/target.ts';
import { ErrorWithHint, withConflictHint, withDenialHint } from '../call-hints.ts';
import { CONFIRMATION_FLAGS, type Command, defineCommand, type Invocation } from '../command.ts';
import { readTextInput } from '../input.ts';
import { pluralize } from '../output/cells.ts';
import { type Output, wrap } from '../output/output.ts';
import { confirmDestructive } from '../prompt.ts';
import { printNotice } from '../terminal.ts';

const LIST_WIDTH = 100;
const USABLE: readonly string[] = SERVICES.filter(({ unsupported }) => unsupported === null).map(({ name }) => name);

export const SERVICE = parsed(
  'NAME',
  'the service of the value, such as openai: its hosts, and how it takes a key',
  toService,
);

/** @throws UsageError */
function toService(given: string, field: string): ServiceDefinition {
  const found = SERVICES.find(({ name }) => name === given);
  if (found === undefined) {
    const near = nearest(given.toLowerCase(), USABLE);
    const hint = near === null ? '' : `; did you mean ${near}?`;
    const names = wrap(USABLE.join(', '), 2, { width: LIST_WIDTH });
    throw new UsageError(`${field}: unknown service${hint}\n  ${names}`, OTHER_SERVICE);
  }
  if (found.unsupported !== null) throw new UsageError(`${field}: ${given} cannot be used yet: ${found.unsupported}`);
  return found;
}

const OTHER_SERVICE = 'For any other service: leasehold target put PATH --origin URL';

const METHODS: readonly string[] = DEFAULT_METHODS;

const FLAGS = {
  service: SERVICE,
  origin: list('URL', 'origin such as https://api.example.com or https://*.example.com'),
  path: list('PATTERN', 'paths below the origin, such as /v1/*; separate several with commas (default /*)'),
  method: list('METHOD', `methods; separate several with commas (default ${METHODS.join(', ')})`),
  'allow-network': list('CIDR', 'internal network in which the origin may be, such as 10.0.0.0/8'),
  'target-ca-file': text('FILE', 'PEM file of the authorities for the origin; no others are trusted there'),
  add: toggle('add to the existing targets, and keep the placement'),
  bearer: toggle('send the value as a bearer token'),
  header: text('NAME[=TEMPLATE]', 'send the value in this header; a template contains {value} once'),
  basic: text('[USER]', 'send the value as the password of USER; without USER the value is user:password'),
  query: text('NAME', 'send the value as this query parameter'),
};

const put = defineCommand({
  name: 'target put',
  about: [
    'Sets the targets and the placement of a credential. --service takes both from the catalogue, and other flags override them. Without it, give --origin and one of --bearer, --header, --basic and --query.',
    'Replaces the previous targets; with --add, it adds to them. Ends the use leases of the credential and aborts its requests in flight. Internal addresses are rejected unless --allow-network contains them; plain http:// needs it too.',
    'An agent then needs the action use on PATH, and does not need retrieve.',
  ],
  arguments: [{ name: 'PATH', help: 'path of the credential', count: 'one' }],
  flags: FLAGS,
  examples: {
    'leasehold target put openai/key --service openai': 'use the hosts and the header of the catalogue',
    "leasehold target put shop/key --origin https://api.shop.example --path '/v2/*' --method GET --header X-Api-Key":
      'read from another service, with the value in a header',
    'leasehold target put shop/key --add --origin https://api.shop.example --path /v2/orders --method POST':
      'allow one more request',
    'leasehold target put wiki/token --origin https://wiki.internal --allow-network 10.0.0.0/8 --target-ca-file ca.pem --bearer':
      'use a service in an internal network, with a private authority',
  },
  async run(invocation, flags, pathText) {
    const { terminal, signal, output } = invocation;
    const path = parsePath(pathText, 'PATH');
    const given = await toRequest(invocation, flags);
    const present = flags.add ? await readTargets(invocation, path) : null;
    const request = present === null ? given : addTo(present.data, given);
    checkFields(request);
    const seen = present === null ? {} : { ifMatch: present.tag };
    const putting = invocation.connect().targets.put(path, request, { ...seen, signal });
    const checked = withConflictHint(invocation, 'targets', path, putting);
    const usage = await withDenialHint(invocation, { action: 'store', path }, checked);
    await printTargets(output, usage);
    printNotice(terminal, `Agents with the action use on ${path} can use it there.`);
  },
});

/** Splits at commas, which neither patterns nor methods contain. */
const listOf = (given: readonly string[]): string[] => given.flatMap((text) => text.split(','));

/** @throws UsageError */
async function toRequest(invocation: Invocation, flags: FlagValues<typeof FLAGS>): Promise<PutTargetsRequest> {
  const { service, origin: origins, 'target-ca-file': caFile } = flags;
  const placement = toPlacement(flags);
  if (service === null && origins.length === 0) {
    throw new UsageError('give --service NAME or --origin URL', 'leasehold target put --help');
  }
  if (flags.add && (service !== null || placement !== null)) {
    throw new UsageError('--add keeps the placement; give --origin, and no other service or placement');
  }
  if (service === null && placement === null && !flags.add) {
    throw new UsageError('give one of --bearer, --header, --basic and --query', 'They set how the value is sent.');
  }
  const [paths, methods] = [listOf(flags.path), listOf(flags.method).map((method) => method.toUpperCase())];
  const networks = flags['allow-network'];
  const own = {
    ...(paths.length === 0 ? {} : { paths }),
    ...(methods.length === 0 ? {} : { methods }),
    ...(networks.length === 0 ? {} : { allow_networks: networks }),
    ...(caFile === null ? {} : { ca_pem: await readTextInput(invocation, caFile) }),
  };
  const hosts = service === null ? origins.map((origin) => ({ origin })) : targetsAt(service, origins);
  const base = hosts ?? (Object.keys(own).length === 0 ? null : (service?.targets ?? null));
  const targets = base?.map((target) => ({ ...target, ...own })) ?? null;
  return withoutNulls({ service: service?.name, targets, placement });
}

/**
 * The existing targets, then the new ones. A new target at an existing origin keeps that origin's networks and
 * authorities unless it names others.
 */
function addTo(
  { service, targets, placement }: CredentialTargets,
  { targets: added = [] }: PutTargetsRequest,
): PutTargetsRequest {
  const completed = added.map((target) => {
    const same = targets.find(({ origin }) => origin === target.origin);
    return same === undefined ? target : { allow_networks: same.allow_networks, ca_pem: same.ca_pem, ...target };
  });
  return { ...withoutNulls({ service }), targets: [...targets, ...completed], placement };
}

/** The placement from the flags; null if no flag sets one. @throws UsageError */
function toPlacement(flags: FlagValues<typeof FLAGS>): PlacementFields | null {
  const { bearer, header, basic: username, query } = flags;
  const given: PlacementFields[] = [];
  if (bearer) given.push({ kind: 'bearer' });
  if (header !== null) {
    const [name = '', ...template] = header.split('=');
    given.push({ kind: 'header', name, ...(template.length === 0 ? {} : { template: template.join('=') }) });
  }
  if (username !== null) given.push({ kind: 'basic', ...(username === '' ? {} : { username }) });
  if (query !== null) given.push({ kind: 'query', name: query });
  if (given.length > 1) throw new UsageError('give only one of --bearer, --header, --basic and --query');
  return given[0] ?? null;
}

const FLAG_OF: Readonly<Record<string, string>> = {
  origin: '--origin',
  paths: '--path',
  methods: '--method',
  allow_networks: '--allow-network',
  ca_pem: '--target-ca-file',
  targets: '--origin',
  template: '--header',
  username: '--basic',
};

/** Names the flag in place of the field. @throws UsageError */
function checkFields({ targets, placement }: PutTargetsRequest): void {
  try {
    if (targets !== undefined) parseTargets(targets);
    if (placement !== undefined) parsePlacement(placement);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const [, field = '', rule = error.message] =
      /^(?:targets\[\d+\]\.|placement\.)?(\w+)(?:\[\d+\])?: (.*)$/s.exec(error.message) ?? [];
    const flag = field === 'name' ? `--${placement?.kind}` : (FLAG_OF[field] ?? '--origin');
    throw new UsageError(`${flag}: ${rule.replace('allow_networks', '--allow-network')}`);
  }
}

const PATH = { name: 'PATH', help: 'path of a credential', count: 'one' } as const;

const show = defineCommand({
  name: 'target show',
  arguments: [PATH],
  async run(invocation, _flags, given) {
    await printTargets(invocation.output, (await readTargets(invocation, parsePath(given, 'PATH'))).data);
  },
});

const remove = defineCommand({
  name: 'target delete',
  about: ['Ends its use leases and aborts its requests in flight. Its value and its other leases stay.'],
  arguments: [PATH],
  flags: CONFIRMATION_FLAGS,
  printsNoRecords: true,
  async run(invocation, flags, given) {
    const { terminal, signal } = invocation;
    const path = parsePath(given, 'PATH');
    const vault = invocation.connect();
    const seen: { ifMatch?: string } = {};
    const describe = async (): Promise<string> => {
      const { data, tag } = await readTargets(invocation, path);
      seen.ifMatch = tag;
      return `${path}: ${pluralize(data.targets.length, 'target')} will be deleted, and requests in flight aborted.`;
    };
    if (!(await confirmDestructive(invocation, flags, describe, 'Delete?'))) return;
    const deleting = vault.targets.delete(path, { ...seen, signal });
    const checked = withConflictHint(invocation, 'targets', path, deleting);
    await withDenialHint(invocation, { action: 'store', path }, checked);
    printNotice(terminal, `Deleted the targets of ${path}.`);
  },
});

export const COMMANDS: readonly Command[] = [put, show, remove];

/** @throws ErrorWithHint, LeaseholdError */
export async function readTargets(invocation: Invocation, path: string): Promise<Tagged<CredentialTargets>> {
  const reading = invocation.connect().targets.readTagged(path, { signal: invocation.signal });
  try {
    return await withDenialHint(invocation, { action: 'list', path }, reading);
  } catch (error) {
    if (!(error instanceof LeaseholdError) || error.code !== 'NOT_FOUND') throw error;
    throw new ErrorWithHint(error, `To set them: leasehold target put ${quoteWord(path)} --service NAME`);
  }
}

/** A table of the targets follows the fields of the credential, unless a program reads the output. */
async function printTargets(output: Output, usage: CredentialTargets): Promise<void> {
  if (!output.isTable) return output.record(usage);
  const { path, service, placement, updated_at, targets } = usage;
  await output.record({ path, service, sent_as: placementWords(placement), updated_at });
  output.text('');
  const rows = targets.map(({ ca_pem, ...others }) => ({
    ...others,
    certificates: ca_pem === null ? 'public' : 'own authority',
  }));
  await output.records(rows, ['origin', 'paths', 'methods', 'allow_networks', 'certificates'], null);
}

function placementWords(placement: CredentialTargets['placement']): string {
  switch (placement.kind) {
    case 'header':
      return `header ${placement.name}: ${placement.template}`;
    case 'query':
      return `query parameter ${placement.name}`;
    case 'basic':
      return placement.username === undefined ? 'basic' : `basic with user ${placement.username}`;
    case 'bearer':
      return 'bearer token';
  }
}

/**
 * The targets of the service with the customer's own hosts. Null if the catalogue lists the hosts and no origin is
 * given. @throws UsageError
 */
export function targetsAt(service: ServiceDefinition, origins: readonly string[]): readonly TargetFields[] | null {
  const { name, needsHost, targets } = service;
  if (!needsHost) {
    return origins.length === 0 ? null : origins.map((origin) => ({ origin }));
  }
  const form = targets.map(({ origin }) => origin).join(' or ');
  if (origins.length === 0) {
    throw new UsageError(
      `--service: each customer of ${name} has its own host`,
      `Add --origin URL, of the form ${form}`,
    );
  }
  try {
    return origins.flatMap((origin) => serviceTargets(service, origin));
  } catch {
    throw new UsageError(`--origin: must be a host of ${name}, of the form ${form}`);
  }
}

/**
 * A warning for a value that does not look like a key of the service; null if it does, or if its keys have no fixed
 * form.
 */
export function keyWarning({ name, key, placement }: ServiceDefinition, value: string): string | null {
  const { prefixes } = key;
  // The value of Basic may begin with a user.
  if (placement.kind === 'basic' || prefixes.length === 0 || prefixes.some((prefix) => value.startsWith(prefix))) {
    return null;
  }
  return `WARNING  keys of ${name} begin with ${prefixes.join(' or ')}, and this value does not.`;
}

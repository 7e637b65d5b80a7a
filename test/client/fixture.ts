/** The library against the real server, through a proxy. */
import { join } from 'node:path';
import { fileSigner, Leasehold, type LeaseholdOptions } from '../../src/client/leasehold.ts';
import type { Scope } from '../kit/directory.ts';
import { startTestService, type TestService } from '../kit/service.ts';
import { type Between, standBetween } from './fault-proxy.ts';

type Options = Omit<LeaseholdOptions, 'address' | 'token' | 'agent'>;

export interface Scene {
  readonly service: TestService;
  readonly between: Between;
  /** Straight to the server, as the administrator. */
  readonly admin: Leasehold;
  /** The address of the proxy. */
  asAdmin(options?: Options): Leasehold;
  asAgent(options?: Options): Leasehold;
  asNobody(options?: Options): Leasehold;
}

export const AGENT = 'reader';

/** `prod/db/password` and an agent that may retrieve, list, store and delete below `prod/`, for so many seconds. */
export async function setScene(scope: Scope, maxTtlSeconds = 900): Promise<Scene> {
  const service = await startTestService(scope);
  const token = service.adminToken;
  const admin = new Leasehold({ address: service.address, token });
  await admin.credentials.store({ path: 'prod/db/password', value: 'correct horse' });
  await admin.agents.register({ name: AGENT });
  await admin.policies.create({
    name: 'reads',
    principal: `agent:${AGENT}`,
    resources: ['prod/*'],
    actions: ['retrieve', 'list', 'store', 'delete'],
    max_ttl: maxTtlSeconds,
  });
  return throughProxy(scope, { service, admin });
}

/** The same vault through another proxy, for a test that injects faults or counts requests. */
export async function throughProxy(scope: Scope, { service, admin }: Pick<Scene, 'service' | 'admin'>): Promise<Scene> {
  const between = await standBetween(scope, service);
  const { address } = between;
  const token = service.adminToken;
  const agent = { name: AGENT, sign: fileSigner(keyFileOf(service)) };
  return {
    service,
    between,
    admin,
    asAdmin: (options) => new Leasehold({ address, token, ...options }),
    asAgent: (options) => new Leasehold({ address, agent, ...options }),
    asNobody: (options) => new Leasehold({ address, ...options }),
  };
}

export const keyFileOf = ({ dataDir }: TestService, name = AGENT): string =>
  join(dataDir, 'agents', name, 'private_key.pem');

/** The expected error, for assert.rejects. */
export const withCode = (code: string, status: number | null) => ({ name: 'LeaseholdError', code, status });

export const collect = <T>(items: AsyncIterable<T>): Promise<T[]> => Array.fromAsync(items);

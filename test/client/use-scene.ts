/** An upstream of the tests, and a credential with targets there that the agent may use and not retrieve. */
import { startUpstream, type Upstream } from '../broker/upstream.ts';
import type { Scope } from '../kit/directory.ts';
import { AGENT, type Scene, setScene } from './fixture.ts';

export const VALUE = 'sk-test-0123456789abcdefghijklmnop';
export const PATH = 'openai/key';

type Handler = Parameters<typeof startUpstream>[1];

export interface UseScene extends Scene {
  readonly upstream: Upstream;
  /** Of the upstream. */
  readonly origin: string;
}

export async function setUseScene(scope: Scope, handler: Handler): Promise<UseScene> {
  const scene = await setScene(scope);
  const upstream = await startUpstream(scope, handler);
  const origin = `https://127.0.0.1:${upstream.port}`;
  const { admin } = scene;
  await admin.credentials.store({ path: PATH, value: VALUE });
  await admin.targets.put(PATH, {
    targets: [{ origin, paths: ['/v1/*'], allow_networks: ['127.0.0.0/8'], ca_pem: upstream.caPem }],
    placement: { kind: 'bearer' },
  });
  await admin.policies.create({
    name: 'uses',
    principal: `agent:${AGENT}`,
    resources: ['openai/*'],
    actions: ['use'],
    max_ttl: 60,
  });
  return { ...scene, upstream, origin };
}

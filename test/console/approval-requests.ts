/** A server whose agents may use a credential once an operator approves, and answers on the approvals page. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Locator } from 'playwright-core';
import { startUpstream } from '../broker/upstream.ts';
import type { TestPage } from '../kit/browser.ts';
import type { Client, TestResponse } from '../kit/client.ts';
import type { Scope } from '../kit/directory.ts';
import { addOperator, type TestOperator } from '../kit/operators.ts';
import type { TestService } from '../kit/service.ts';
import { storeWithTargets } from '../kit/use.ts';

export interface Approvals {
  readonly origin: string;
  /** An approver. */
  readonly alice: TestOperator;
  agentWith(name: string, approval: object): Promise<Client>;
  call(client: Client, path: string, body: string, purpose?: string): Promise<TestResponse>;
}

export async function setUpApprovals(scope: Scope, service: TestService): Promise<Approvals> {
  const upstream = await startUpstream(scope, (_, response) => response.end('done'));
  const origin = `https://127.0.0.1:${upstream.port}`;
  const alice = await addOperator(service, 'alice', ['approver']);
  await storeWithTargets(service, 'pay/key', upstream);
  return {
    origin,
    alice,
    async agentWith(name, approval) {
      const agent = await service.agent(name);
      const policy = { principal: `agent:${name}`, resources: ['pay/*'], actions: ['use'], approval };
      const { status } = await service.admin.put(`/api/v1/policies/of-${name}`, policy);
      if (status !== 200) throw new Error(`the policy of ${name}: ${status}`);
      return agent;
    },
    call: (client, path, body, purpose = 'a weekly report') =>
      client.post('/api/v1/use', {
        path: 'pay/key',
        method: 'POST',
        url: `${origin}${path}`,
        headers: { 'content-type': 'application/json' },
        purpose,
        body,
      }),
  };
}

export const card = ({ page }: TestPage, name: string | RegExp): Locator => page.getByRole('article', { name });

/** An answer counts once the card was shown, in its place, for half a second: clicks until one counts. */
export async function answer({ page }: TestPage, button: Locator): Promise<void> {
  let isSent = false;
  const sent = page.waitForRequest((request) => {
    isSent ||= request.method() === 'POST' && /\/(?:approve|deny)$/.test(request.url());
    return isSent;
  });
  while (!isSent) {
    // The button is disabled or gone after a click that counts.
    const clicked = button.click({ timeout: 5000 }).catch(() => undefined);
    await Promise.race([sent, clicked]);
    await Promise.race([sent, sleep(200)]);
  }
  await sent;
}

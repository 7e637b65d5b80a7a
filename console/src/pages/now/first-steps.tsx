/**
 * The missing steps of a new vault, in the recommended order. The section disappears after the first access to a
 * credential.
 */
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { AGENT_NAME } from '../../../../src/core/names.ts';
import { Badge, Copyable } from '../../components/texts.tsx';
import { client } from '../../session/console-client.ts';
import { intervalOf } from '../../session/queries.ts';
import { useLiveEntries } from './live-entries.ts';

const INTERVAL_MS = 3000;
/** Events that show that an agent has accessed a credential. */
const EVENTS = ['credential.retrieve', 'credential.use_result'] as const;

interface Step {
  readonly title: string;
  readonly text: string;
  readonly href: string;
  readonly link: string;
  readonly command: string;
  readonly isDone: boolean;
}

async function readPresence(signal: AbortSignal) {
  // WHY so many: the newest ones may all belong to operators.
  const [{ agents, paths }, policies, ...uses] = await Promise.all([
    client.overview.matrix({ agent_limit: 1, path_limit: 1 }, { signal }),
    client.policies.list({ limit: 1 }, { signal }),
    ...EVENTS.map((event_type) => client.audit.list({ event_type, result: 'allowed', limit: 1000 }, { signal })),
  ]);
  const hasUse = uses.some(({ data }) => data.some(({ agent_name }) => AGENT_NAME.test(agent_name)));
  return { credential: paths[0] ?? null, agent: agents[0]?.name ?? null, hasPolicy: policies.meta.total > 0, hasUse };
}

/** The URL of the simulator, which proposes the policy that grants the first agent the first credential. */
function grantUrl(agent: string | null, credential: string | null): string {
  if (agent === null || credential === null) return '/access';
  return `/access?${new URLSearchParams({ view: 'simulator', for: agent, action: 'use', path: credential })}`;
}

/** Null if all steps are done, or while that is unknown. */
function useSteps(): readonly Step[] | null {
  const entries = useLiveEntries();
  const isUsedNow = entries.data?.happened.some(({ agent_name }) => AGENT_NAME.test(agent_name)) ?? false;
  const { data } = useQuery({
    queryKey: ['now-first-steps'],
    queryFn: ({ signal }) => readPresence(signal),
    refetchInterval: (query) => (isUsedNow || query.state.data?.hasUse ? false : intervalOf(INTERVAL_MS)(query)),
    enabled: entries.data !== undefined,
  });
  if (data === undefined || entries.data === undefined) return null;
  const hasUse = isUsedNow || data.hasUse;
  const steps: readonly Step[] = [
    {
      title: 'Store a credential',
      text: 'A key or a password, at a path such as openai/key. Its service determines the hosts that it may be sent to.',
      href: '/credentials',
      link: 'Open Credentials',
      command: 'leasehold put openai/key --service openai',
      isDone: data.credential !== null,
    },
    {
      title: 'Register an agent',
      text: 'The program that needs the credential. It proves its identity with a key.',
      href: '/agents',
      link: 'Open Agents',
      command: 'leasehold agent add deploy-bot',
      isDone: data.agent !== null,
    },
    {
      title: 'Grant the agent the credential',
      text: 'A policy names the agent, the actions and the paths. Everything else is denied.',
      href: grantUrl(data.agent, data.credential),
      link: 'Open Access',
      command: "leasehold policy put first-grant --principal agent:deploy-bot --resource 'openai/*' --action use",
      isDone: data.hasPolicy,
    },
    {
      title: 'Use it as the agent',
      text: 'The agent makes its request; it appears on this page within a second.',
      href: '/log?tail=on',
      link: 'Watch the audit log',
      command: 'leasehold --agent deploy-bot use openai/key GET /v1/models',
      isDone: hasUse,
    },
  ];
  return steps.every(({ isDone }) => isDone) ? null : steps;
}

export function FirstSteps() {
  const steps = useSteps();
  if (steps === null || steps[3]?.isDone === true) return null;
  const next = steps.findIndex(({ isDone }) => !isDone);
  return (
    <section className="empty" aria-labelledby="first-steps">
      <h2 id="first-steps">First steps</h2>
      <p>An agent can use a credential only after these steps. Do each one here or with its command.</p>
      <p className="hint">
        In a checkout, write <code>scripts/leasehold</code> for <code>leasehold</code>, and set{' '}
        <code>LEASEHOLD_DATA_DIR</code> to the data directory that the server prints.
      </p>
      <ol className="steps">
        {steps.map(({ title, text, href, link, command, isDone }, index) => (
          <li key={title} aria-current={index === next ? 'step' : undefined}>
            <h3>
              {title} {isDone && <Badge text="done" tone="good" />}
            </h3>
            {!isDone && (
              <>
                <p>{text}</p>
                <p className="step-ways">
                  <Link href={href}>{link}</Link>
                  <Copyable text={command} what={`the command: ${title}`} />
                </p>
              </>
            )}
          </li>
        ))}
      </ol>
    </section>
  );
}

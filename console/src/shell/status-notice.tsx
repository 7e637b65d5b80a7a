/** Reports the state of a server that is locked, rolled back, failing or unreachable. */
import { useQuery } from '@tanstack/react-query';
import { LeaseholdError } from '../../../src/client/errors.ts';
import { client } from '../session/console-client.ts';

const INTERVAL_MS = 10_000;

const ADVICE: readonly [pattern: RegExp, title: string, advice: string][] = [
  [/"locked"/, 'The vault is locked', 'Unlock it on the server’s machine: leasehold unlock.'],
  [
    /"rolled_back"/,
    'The audit log has lost entries',
    'The server is in recovery mode: only the audit log is available. Read docs/operations.md, then run: leasehold audit accept-rollback.',
  ],
  [/"failing"/, 'The server cannot write', 'Check its disk and the server log. It retries every second.'],
  [/"(?:starting|stopping)"/, 'The server is starting or stopping', 'This page continues when it is ready.'],
];

export function StatusNotice() {
  const { error } = useQuery({
    queryKey: ['health'],
    queryFn: ({ signal }) => client.health({ signal }),
    refetchInterval: INTERVAL_MS,
  });
  if (!(error instanceof LeaseholdError)) return null;
  const [
    ,
    title = 'The server does not respond',
    advice = 'Check that it is running and reachable from this machine.',
  ] = ADVICE.find(([pattern]) => pattern.test(error.message)) ?? [];
  return (
    <div className="notice danger" role="status">
      <p>
        <strong>{title}.</strong> {advice}
      </p>
    </div>
  );
}

/** Simulates a decision of the server, and explains it policy by policy. Nothing is accessed or recorded. */

import { useQuery } from '@tanstack/react-query';
import { type FormEvent, useRef } from 'react';
import { useSearchParams } from 'wouter';
import type { Considered } from '../../../../src/vault/policies/access-explanation.ts';
import { ACTIONS } from '../../../../src/vault/policies/policy.ts';
import { ControlledTextField } from '../../components/fields.tsx';
import { useDraft, useSetParameters } from '../../components/filter-bar.tsx';
import { Facts } from '../../components/side-panel.tsx';
import { ErrorPanel, Loading } from '../../components/states.tsx';
import { Badge } from '../../components/texts.tsx';
import { durationText } from '../../components/words.ts';
import {
  askServer,
  completeUrl,
  QUESTION_FIELDS,
  type QuestionFields,
  readQuestion,
  type SimulatedAccess,
} from './access-question.ts';
import { FixCard } from './fix-card.tsx';
import { approvalText } from './policy-sentence.ts';

const EMPTY: QuestionFields = { for: '', action: 'retrieve', path: '', method: 'GET', url: '' };

export function SimulatorView() {
  const [parameters] = useSearchParams();
  const given = Object.fromEntries(
    QUESTION_FIELDS.flatMap((name) => {
      const value = parameters.get(name);
      return value === null ? [] : [[name, value]];
    }),
  );
  const asked: QuestionFields = { ...EMPTY, ...given };
  const isPartial = asked.url.startsWith('//');
  const {
    data: url,
    error,
    refetch,
  } = useQuery({
    queryKey: ['recorded-url', asked.path, asked.url],
    queryFn: ({ signal }) => completeUrl(asked, signal),
    enabled: isPartial,
  });
  if (!isPartial) return <Simulator asked={asked} />;
  if (error !== null) return <ErrorPanel error={error} onRetry={() => void refetch()} />;
  if (url === undefined) return <Loading what="the targets" />;
  return <Simulator asked={{ ...asked, url }} />;
}

function Simulator({ asked }: { readonly asked: QuestionFields }) {
  const setParameters = useSetParameters();
  const [fields, setFields] = useDraft(asked);
  const isAsked = asked.for !== '' && asked.path !== '';
  const read = readQuestion(asked);
  const { question } = read;
  const { data, error, isFetching, refetch } = useQuery({
    queryKey: ['simulation', question],
    queryFn: ({ signal }) => (question === null ? null : askServer(question, signal)),
    enabled: isAsked && question !== null,
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const isUse = fields.action === 'use' && fields.url !== '';
    // The query is removed: it may contain a secret, and targets do not depend on it.
    const [url = ''] = fields.url.trim().split('?');
    const { for: agent, action, path } = fields;
    setParameters({
      view: 'simulator',
      for: agent.trim(),
      action,
      path: path.trim(),
      method: isUse ? fields.method.trim() : null,
      url: isUse ? url : null,
    });
    void refetch();
  };
  const problems = isAsked ? (read.problems ?? {}) : {};
  const text = (name: 'for' | 'path' | 'method' | 'url', label: string, placeholder: string) => (
    <ControlledTextField
      label={label}
      placeholder={placeholder}
      value={fields[name]}
      problem={problems[name]}
      onChange={(value) => setFields({ ...fields, [name]: value })}
    />
  );
  return (
    <>
      <form className="form" aria-label="Simulate a decision" onSubmit={submit}>
        {text('for', 'Agent', 'ci-runner')}
        <label className="field">
          <span>Action</span>
          <select value={fields.action} onChange={({ target }) => setFields({ ...fields, action: target.value })}>
            {ACTIONS.map((action) => (
              <option key={action}>{action}</option>
            ))}
          </select>
        </label>
        {text('path', 'Path', 'prod/db/password')}
        {fields.action === 'use' && text('method', 'Method', 'GET')}
        {fields.action === 'use' && text('url', 'URL (optional)', 'https://api.example.com/v1/models')}
        <div className="buttons wide-field">
          <button type="submit" className="primary" disabled={fields.for === '' || fields.path === ''}>
            Simulate
          </button>
        </div>
      </form>
      {error !== null && <ErrorPanel error={error} onRetry={() => void refetch()} />}
      {isFetching && data === undefined && <Loading what="the decision" />}
      {data != null && <AnswerView answer={data} />}
      {!isAsked && (
        <p className="hint">
          The simulator shows the current decision of the server, with reasons. Nothing is accessed or recorded. You can
          also open it from a cell of the matrix.
        </p>
      )}
    </>
  );
}

function AnswerView({ answer }: { readonly answer: SimulatedAccess }) {
  const heading = useRef<HTMLHeadingElement>(null);
  const { explanation, approval, finding, isRegistered } = answer;
  const { agent, action, path, request, policy_name, lease_ttl, reason, policies, nearest_pattern } = explanation;
  const what = request === null ? path : `${path} for ${request.method} ${request.url}`;
  const isGranted = explanation.allowed;
  const isAllowed = isGranted && isRegistered && finding === null;
  return (
    <>
      <section className="card" aria-label="Decision">
        <h2 ref={heading} tabIndex={-1}>
          <Badge text={isAllowed ? 'allowed' : 'denied'} tone={isAllowed ? 'good' : 'danger'} /> {agent} {action}{' '}
          <bdi>{what}</bdi>
        </h2>
        <p>{reason}</p>
        <Facts
          rows={[
            [isGranted ? 'granted by' : 'decided by', policy_name ?? (isGranted ? null : deniedBy(policies))],
            ['lease', lease_ttl === null ? null : `up to ${durationText(lease_ttl)}`],
            ['approval', approval === null ? 'not needed' : approvalText(approval)],
            ...(isRegistered ? [] : [['denied, because', `${agent} is not registered`] as const]),
            ...(finding === null ? [] : [['use is denied', finding] as const]),
            ...(nearest_pattern === null ? [] : [['nearest pattern', nearest_pattern] as const]),
          ]}
        />
      </section>
      {!isAllowed && <FixCard answer={answer} onApplied={() => heading.current?.focus()} />}
      {policies === null ? (
        <p className="hint">There are too many policies to explain each here. Use leasehold policy explain.</p>
      ) : (
        <PolicyTable policies={policies} action={action} />
      )}
    </>
  );
}

/** The part that denies the use. If a policy grants it, no target allows its request. */
const deniedBy = (policies: readonly Considered[] | null): string =>
  policies?.some(({ failed }) => failed === null) === true ? 'the targets of the credential' : 'no policy grants it';

/** The policies as a table. Policies of other agents are only counted. */
function PolicyTable({ policies, action }: { readonly policies: readonly Considered[]; readonly action: string }) {
  const shown = policies.filter(({ failed }) => failed !== 'principal');
  const others = policies.length - shown.length;
  return (
    <section className="card" aria-label="Policies considered">
      <h2>Policies considered</h2>
      {shown.length > 0 && (
        <div className="scrolls">
          <table className="plain-table">
            <thead>
              <tr>
                <th scope="col">Policy</th>
                <th scope="col">Principal</th>
                <th scope="col">Longest lease</th>
                <th scope="col">Result</th>
              </tr>
            </thead>
            <tbody>
              {shown.map((policy) => (
                <tr key={policy.name}>
                  <td>{policy.name}</td>
                  <td>{policy.principal}</td>
                  <td>{durationText(policy.max_ttl)}</td>
                  <td>{resultText(policy, action)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <p className="hint">{`${others} more ${others === 1 ? 'policy does' : 'policies do'} not name the agent.`}</p>
    </section>
  );
}

function resultText({ failed, pattern, decides }: Considered, action: string): string {
  if (failed === 'action') return `does not grant ${action}`;
  if (failed === 'pattern') return `has no pattern for the path; the nearest is ${pattern}`;
  return decides ? `decides: the shortest lease of those that match (${pattern})` : `matches (${pattern})`;
}

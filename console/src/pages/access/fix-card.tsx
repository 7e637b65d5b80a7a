/** The change that would allow a denied access, as a difference, with one button that applies it. */
import { useMutation } from '@tanstack/react-query';
import { Link } from 'wouter';
import type { Tagged } from '../../../../src/client/leasehold.ts';
import type { CredentialTargets } from '../../../../src/client/types.ts';
import { isOperatorName, type PrincipalName } from '../../../../src/core/names.ts';
import type { ExactTarget } from '../../../../src/vault/policies/access-explanation.ts';
import type { PolicyDraft } from '../../../../src/vault/policies/policy.ts';
import { useEdit } from '../../components/edit-conflict.tsx';
import { announce } from '../../components/live-region.tsx';
import { RoleButton, RoleHint } from '../../components/role-button.tsx';
import { ErrorPanel } from '../../components/states.tsx';
import { credentialHref } from '../../components/texts.tsx';
import { client } from '../../session/console-client.ts';
import { forgetCredentials, targetsSubject } from '../credentials/credential-queries.ts';
import type { SimulatedAccess, UseObstacle } from './access-question.ts';
import { PolicyDiff } from './policy-diff.tsx';
import { sentenceOf } from './policy-sentence.ts';
import { forgetDecisions, savePolicy } from './save-policy.ts';

interface FixCardProps {
  readonly answer: SimulatedAccess;
  /** Called when the change is saved and the decision has been read again. */
  readonly onApplied: () => void;
}

export function FixCard({ answer, onApplied }: FixCardProps) {
  const { question, explanation, targets, finding, isRegistered } = answer;
  const { grant, target } = explanation;
  // A policy for an unregistered name grants nothing now, but everything in it to a later agent of this name.
  if (!isRegistered) return <RegistrationFix name={question.agent} />;
  const missing = finding === null ? null : <MissingFix path={question.path} finding={finding} />;
  if (target !== null && missing === null) {
    return <TargetFix path={question.path} target={target} targets={targets} onApplied={onApplied} />;
  }
  if (grant === null) return missing;
  return (
    <>
      <PolicyFix key={JSON.stringify(question)} grant={grant} onApplied={onApplied} />
      {missing}
    </>
  );
}

function RegistrationFix({ name }: { readonly name: PrincipalName }) {
  const isOperator = isOperatorName(name);
  return (
    <section className="card" aria-label="How to allow it">
      <h2>How to allow it</h2>
      <p>
        This name is not registered. Every access under it is denied, whatever the policies grant.{' '}
        <Link href={isOperator ? '/settings?section=operators' : '/agents'}>
          {isOperator ? 'Add the operator' : 'Register the agent'}
        </Link>
        , or correct the name.
      </p>
    </section>
  );
}

function MissingFix({ path, finding }: { readonly path: string; readonly finding: UseObstacle }) {
  const isStored = finding === 'the credential has no targets';
  return (
    <section className="card" aria-label="Missing requirement">
      <h2>Missing requirement</h2>
      {isStored ? (
        <p>
          The credential has no targets, so it cannot be used, whatever the policies grant:{' '}
          <Link href={credentialHref(path)}>set them with the placement of its value</Link>.
        </p>
      ) : (
        <p>
          No credential is at this path. <Link href="/credentials">Store it with its targets</Link>, or correct the
          path.
        </p>
      )}
    </section>
  );
}

interface PolicyFixProps {
  /** The policy that grants this access and nothing else. */
  readonly grant: PolicyDraft;
  readonly onApplied: () => void;
}

function PolicyFix({ grant, onApplied }: PolicyFixProps) {
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => savePolicy(null, grant),
    onSuccess: () => {
      announce(`The policy ${grant.name} is saved.`);
      onApplied();
    },
  });
  return (
    <section className="card" aria-label="How to allow it">
      <h2>How to allow it</h2>
      <PolicyDiff before={null} after={grant} />
      <p>{sentenceOf(grant)}</p>
      {error !== null && <ErrorPanel error={error} />}
      <ApplyButton isPending={isPending} onClick={() => mutate()} />
    </section>
  );
}

interface TargetFixProps {
  readonly path: string;
  readonly target: ExactTarget;
  /** Null if the credential has no targets, so that its placement is unknown. */
  readonly targets: Tagged<CredentialTargets> | null;
  readonly onApplied: () => void;
}

/** For a request that the policies grant, but no target allows. */
function TargetFix({ path, target, targets, onApplied }: TargetFixProps) {
  const { mutate, error, isPending, reset } = useMutation({
    mutationFn: async ({ tag, data: { targets: present, placement, service } }: Tagged<CredentialTargets>) => {
      // Plain HTTP needs the networks of the existing target at this origin.
      const like = present.find(({ origin }) => origin === target.origin);
      const added = { ...target, ...(like === undefined ? {} : { allow_networks: like.allow_networks }) };
      // Without this, the credential would lose its service, which the difference does not show.
      const kept = service === null ? {} : { service };
      await client.targets.put(path, { ...kept, targets: [...present, added], placement }, { ifMatch: tag });
      await Promise.all([forgetDecisions(), forgetCredentials()]);
    },
    onSuccess: () => {
      announce(`The targets of ${path} are saved.`);
      onApplied();
    },
    onError: (failure) => catchConflict(failure),
  });
  const { isBlocked, catchConflict, notice } = useEdit(targets, {
    subject: targetsSubject(path),
    keeps: 'never',
    onReload: async () => {
      await Promise.all([forgetDecisions(), forgetCredentials()]);
      reset();
    },
  });
  return (
    <section className="card" aria-label="How to allow it">
      <h2>How to allow it</h2>
      <p>A policy grants it, but no target of the credential allows this request.</p>
      <table className="diff">
        <caption className="visually-hidden">Change of the targets</caption>
        <tbody>
          <tr>
            <th scope="row">targets</th>
            <td>
              {(targets?.data.targets ?? []).map((each) => (
                <span key={JSON.stringify(each)} className="same">{`  ${targetText(each)}`}</span>
              ))}
              <ins>{`+ ${targetText(target)}`}</ins>
            </td>
          </tr>
        </tbody>
      </table>
      {isBlocked ? notice : error !== null && <ErrorPanel error={error} />}
      {targets === null ? (
        <p>
          The credential has no targets yet:{' '}
          <Link href={credentialHref(path)}>set them with the placement of its value</Link>.
        </p>
      ) : (
        <>
          <p>Saving ends the use leases of this credential; agents take new ones.</p>
          <ApplyButton isPending={isPending || isBlocked} onClick={() => mutate(targets)} />
        </>
      )}
    </section>
  );
}

function ApplyButton({ isPending, onClick }: { readonly isPending: boolean; readonly onClick: () => void }) {
  return (
    <>
      <div className="buttons">
        <RoleButton needs="editor" className="primary" disabled={isPending} onClick={onClick}>
          Apply this change
        </RoleButton>
      </div>
      <RoleHint needs="editor" />
    </>
  );
}

const targetText = ({ origin, paths, methods }: ExactTarget): string =>
  `${origin} ${paths.join(' ')} (${methods.join(', ')})`;

/** The link of an invitation. It is shown once: only the service knows the code afterwards. */
import { useEffect, useRef } from 'react';
import type { OneTimeCode } from '../../../../src/client/types.ts';
import { Copyable } from '../../components/copyable.tsx';
import { Time } from '../../components/time.tsx';

interface Props {
  readonly name: string;
  readonly code: OneTimeCode;
  readonly onClose: () => void;
}

/** Passkeys do not work at an IP address, but at the name of this machine. */
function originForPasskeys(): string {
  return location.origin.replace(/^http:\/\/(?:127\.0\.0\.1|\[::1\])(?=:|$)/, 'http://localhost');
}

export function Invitation({ name, code: { code, expires_at }, onClose }: Props) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  return (
    <section className="invitation" aria-label={`Invitation of ${name}`}>
      <h2 ref={heading} tabIndex={-1}>
        Send this link to {name}
      </h2>
      <p>
        It registers one passkey, once, until <Time at={expires_at} />. Send it to that person alone. It is not shown
        again.
      </p>
      <Copyable text={`${originForPasskeys()}/console/enrol#${code}`} what="the link" />
      <button type="button" onClick={onClose}>
        Hide the link
      </button>
    </section>
  );
}

/**
 * Shows a value for 30 seconds. It is an ordinary retrieval, with a lease and an audit entry. INVARIANT: the value is
 * in one text node only. React never receives it, because React keeps the previous state and elements of a component.
 * No query, no state and no closure that outlives the call contains it.
 */
import { useCallback, useEffect, useRef, useState } from 'react';
import { ConfirmDialog } from '../../components/form-dialog.tsx';
import { announce } from '../../components/live-region.tsx';
import { client, useRole } from '../../session/console-client.ts';
import { forgetCredentials } from './credential-queries.ts';

const SHOWN_SECONDS = 30;
const TICK_MS = 250;

export function Reveal({ path }: { readonly path: string }) {
  const isEditor = useRole('editor');
  const output = useRef<HTMLOutputElement>(null);
  const hiding = useRef<HTMLButtonElement>(null);
  const asking = useRef<AbortController | null>(null);
  const [isAsking, setAsking] = useState(false);
  /** The time of the end, on the clock of `performance.now()`. */
  const [endsAt, setEndsAt] = useState<number | null>(null);
  const [left, setLeft] = useState(SHOWN_SECONDS);
  const isShown = endsAt !== null;
  const hide = useCallback((): void => {
    output.current?.replaceChildren();
    setEndsAt(null);
    announce('The value is hidden.');
  }, []);
  useEffect(() => {
    const element = output.current;
    return () => {
      asking.current?.abort();
      element?.replaceChildren();
    };
  }, []);
  // The dialog keeps the focus until it is closed.
  useEffect(() => {
    if (isShown && !isAsking) hiding.current?.focus();
  }, [isShown, isAsking]);
  useEffect(() => {
    if (endsAt === null) return;
    const tick = (): void => {
      const seconds = Math.ceil((endsAt - performance.now()) / 1000);
      setLeft(Math.max(0, seconds));
      if (seconds <= 0) hide();
    };
    tick();
    const timer = setInterval(tick, TICK_MS);
    return () => clearInterval(timer);
  }, [endsAt, hide]);
  const reveal = async (): Promise<void> => {
    const controller = new AbortController();
    asking.current = controller;
    const { signal } = controller;
    const { value } = await client.credentials.retrieve(path, { ttlSeconds: SHOWN_SECONDS, signal });
    // The dialog or the panel may have been closed in the meantime.
    signal.throwIfAborted();
    const element = output.current;
    if (element === null) return;
    element.textContent = value.reveal();
    setEndsAt(performance.now() + SHOWN_SECONDS * 1000);
    // The retrieval changed the exposure and the number of reads.
    void forgetCredentials();
    announce(`The value is shown for ${SHOWN_SECONDS} seconds.`);
  };
  const close = (): void => {
    asking.current?.abort();
    setAsking(false);
  };
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(output.current?.textContent ?? '');
      announce('Copied the value. The clipboard keeps it until something else is copied.');
    } catch {
      announce('The browser does not allow copying. Select the value instead.');
    }
  };
  return (
    <section className="panel-section" aria-label="Value">
      <h3>Value</h3>
      <output ref={output} className="revealed" aria-label="The value" aria-live="off" />
      {isShown ? (
        <div className="buttons">
          <button ref={hiding} type="button" className="primary" onClick={hide}>
            Hide now
          </button>
          <button type="button" onClick={() => void copy()}>
            Copy the value
          </button>
          <span className="count" role="timer">{`Hidden in ${left} s`}</span>
        </div>
      ) : (
        <>
          <p className="hint">
            Revealing is recorded under your name and issues a lease of {SHOWN_SECONDS} seconds. The exposure of this
            version then lists your name.
          </p>
          <div className="buttons">
            <button type="button" disabled={!isEditor} onClick={() => setAsking(true)}>
              Reveal…
            </button>
          </div>
          {!isEditor && (
            <p className="hint">Revealing values requires the editor role and a policy that grants retrieve.</p>
          )}
        </>
      )}
      <ConfirmDialog
        isOpen={isAsking}
        title="Reveal the value?"
        verb={`Reveal for ${SHOWN_SECONDS} seconds`}
        onConfirm={reveal}
        onClose={close}
      >
        <p>
          The value of <code>{path}</code> is shown on this screen for {SHOWN_SECONDS} seconds. The retrieval is
          recorded under your name, and a lease is issued. If a policy requires an approval, the request waits for it.
        </p>
      </ConfirmDialog>
    </section>
  );
}

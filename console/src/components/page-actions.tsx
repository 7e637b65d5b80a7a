/** Buttons of a page, in a line. The palette can press them. */
import { type ReactNode, useEffect, useRef } from 'react';
import { offerActions } from '../shell/page-commands.ts';

export function PageActions({ children }: { readonly children: ReactNode }) {
  const actions = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const { current } = actions;
    if (current === null) return undefined;
    const stop = offerActions(current);
    return () => void stop();
  }, []);
  return (
    <div ref={actions} className="page-actions">
      {children}
    </div>
  );
}

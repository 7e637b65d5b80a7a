/** The frame of every page: skip link, top bar, side navigation, notices, and the main region. */
import { type ReactNode, useCallback, useEffect, useRef, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { PAGES } from '../pages.ts';
import { type NearEnd, useActivity } from '../session/activity.ts';
import { renewSession } from '../session/console-client.ts';
import type { SessionIdentity } from '../session/session-store.ts';
import { CommandPalette } from './command-palette.tsx';
import { StatusNotice } from './status-notice.tsx';
import { TopBar } from './top-bar.tsx';

export function Layout({ identity, children }: { readonly identity: SessionIdentity; readonly children: ReactNode }) {
  const [isPaletteOpen, setPaletteOpen] = useState(false);
  const openPalette = useCallback(() => setPaletteOpen(true), []);
  useShortcuts(openPalette);
  const nearEnd = useActivity(identity);
  return (
    <div className="layout">
      <a className="skip-link" href="#main">
        Skip to the content
      </a>
      <TopBar identity={identity} onSearch={openPalette} />
      <Navigation />
      <main id="main" tabIndex={-1}>
        <StatusNotice />
        {nearEnd !== null && <EndNotice {...nearEnd} />}
        {children}
      </main>
      <CommandPalette isOpen={isPaletteOpen} onClose={() => setPaletteOpen(false)} />
    </div>
  );
}

function Navigation() {
  const [location] = useLocation();
  const navigation = useRef<HTMLElement>(null);
  const [, page = ''] = location.split('/');
  useEffect(() => {
    const { current } = navigation;
    if (page === '' || current === null) return undefined;
    // In a narrow window the pages are one scrolling line. A number that appears in it moves the others.
    const show = (): void =>
      current.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    const observer = new ResizeObserver(show);
    for (const item of current.querySelectorAll('li')) observer.observe(item);
    return () => observer.disconnect();
  }, [page]);
  return (
    <nav ref={navigation} className="side" aria-label="Pages">
      <ul>
        {PAGES.map(({ path, title, Mark }) => {
          const isCurrent = location === path || location.startsWith(`${path}/`);
          return (
            <li key={path}>
              <Link href={path} aria-current={isCurrent ? 'page' : undefined}>
                {title}
                {Mark !== undefined && <Mark />}
              </Link>
            </li>
          );
        })}
      </ul>
    </nav>
  );
}

function EndNotice({ leftMs, isExtensible }: NearEnd) {
  const minutes = Math.max(1, Math.ceil(leftMs / 60_000));
  if (!isExtensible) {
    return (
      <p className="notice warning" role="status">
        Your session ends in {minutes} min, because sessions last at most 12 hours. Sign in again to continue.
      </p>
    );
  }
  return (
    <div className="notice warning" role="status">
      <p>Your session ends in {minutes} min, because you were idle.</p>
      <button type="button" onClick={() => void renewSession().catch(() => undefined)}>
        Stay signed in
      </button>
    </div>
  );
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

function useShortcuts(openPalette: () => void): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const isCommand = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k';
      const isSlash = event.key === '/' && !event.ctrlKey && !event.metaKey && !isTyping(event.target);
      if (!isCommand && !isSlash) return;
      event.preventDefault();
      openPalette();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, [openPalette]);
}

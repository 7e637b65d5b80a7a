/** The bar above every page: search, theme, time zone, and the signed-in operator. */

import { ZONES } from '../components/words.ts';
import { signOut } from '../session/console-client.ts';
import type { SessionIdentity } from '../session/session-store.ts';
import { setPreference, THEMES, usePreferences } from './preferences.ts';

interface Props {
  readonly identity: SessionIdentity;
  readonly onSearch: () => void;
}

const LABELS = { system: 'System', light: 'Light', dark: 'Dark', local: 'Local time', UTC: 'UTC' } as const;

export function TopBar({ identity, onSearch }: Props) {
  const { theme, zone } = usePreferences();
  return (
    <header className="top">
      <span className="brand">Leasehold</span>
      <button type="button" className="search" onClick={onSearch} aria-keyshortcuts="/ Control+K Meta+K">
        <span>Search</span>
        <kbd>/</kbd>
      </button>
      <div className="top-choices">
        <label>
          <span className="visually-hidden">Time zone</span>
          <select
            value={zone}
            onChange={({ target }) => setPreference('zone', ZONES.find((each) => each === target.value) ?? 'local')}
          >
            {ZONES.map((each) => (
              <option key={each} value={each}>
                {LABELS[each]}
              </option>
            ))}
          </select>
        </label>
        <label>
          <span className="visually-hidden">Theme</span>
          <select
            value={theme}
            onChange={({ target }) => setPreference('theme', THEMES.find((each) => each === target.value) ?? 'system')}
          >
            {THEMES.map((each) => (
              <option key={each} value={each}>
                {LABELS[each]}
              </option>
            ))}
          </select>
        </label>
        <span>
          <strong>{identity.name}</strong> <span className="roles">{identity.roles.join(', ')}</span>
        </span>
        <button type="button" onClick={() => void signOut().catch(() => undefined)}>
          Sign out
        </button>
      </div>
    </header>
  );
}

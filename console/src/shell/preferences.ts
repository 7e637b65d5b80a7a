/** Preferences of this browser: theme and time zone. Stored locally; they contain no secret. */
import { useSyncExternalStore } from 'react';
import { ZONES, type Zone } from '../components/words.ts';

export const THEMES = ['system', 'light', 'dark'] as const;
type Theme = (typeof THEMES)[number];

interface Preferences {
  readonly theme: Theme;
  readonly zone: Zone;
}

const KEYS = { theme: 'leasehold.theme', zone: 'leasehold.zone' } as const;
const listeners = new Set<() => void>();
let current: Preferences = {
  theme: choose(THEMES, localStorage.getItem(KEYS.theme)),
  zone: choose(ZONES, localStorage.getItem(KEYS.zone)),
};

function choose<T extends string>(known: readonly [T, ...T[]], text: string | null): T {
  return known.find((word) => word === text) ?? known[0];
}

export function applyTheme(): void {
  document.documentElement.dataset['theme'] = current.theme;
}

export function setPreference<K extends keyof Preferences>(name: K, value: Preferences[K]): void {
  current = { ...current, [name]: value };
  localStorage.setItem(KEYS[name], value);
  applyTheme();
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function usePreferences(): Preferences {
  return useSyncExternalStore(subscribe, () => current);
}

/**
 * The commands of pages that the palette has: each opens its page and then presses the button of this name there, so
 * that the page alone decides what the button does. A button that does not appear soon is not pressed.
 */
export interface PageCommand {
  /** As on the button. */
  readonly button: string;
  readonly title: string;
  readonly description: string;
  readonly href: string;
  /** Null if every role has it. */
  readonly role: 'editor' | 'admin' | null;
}

export const PAGE_COMMANDS: readonly PageCommand[] = [
  {
    button: 'Store a credential',
    title: 'Store a credential',
    description: 'Credentials',
    href: '/credentials',
    role: 'editor',
  },
  { button: 'Register an agent', title: 'Register an agent', description: 'Agents', href: '/agents', role: 'editor' },
  { button: 'New policy', title: 'New policy', description: 'Access', href: '/access?view=policies', role: 'editor' },
  {
    button: 'Panic: end everything',
    title: 'Panic: end everything',
    description: 'Agents: asks before it ends leases and sessions',
    href: '/agents',
    role: 'admin',
  },
  { button: 'Verify', title: 'Verify the log', description: 'Log', href: '/log', role: null },
  { button: 'Export', title: 'Export the log', description: 'Log: all entries', href: '/log', role: null },
];

const WAIT_MS = 10_000;

interface Wanted {
  readonly button: string;
  /** The page is left as soon as the address is another one. */
  readonly address: string;
  readonly until: number;
}

let wanted: Wanted | null = null;
const listeners = new Set<() => void>();
const currentAddress = (): string => location.pathname + location.search;

/** Call it after the page was opened. WHY it presses later: the page that is shown still has the former address. */
export function pressOnPage(button: string): void {
  wanted = { button, address: currentAddress(), until: performance.now() + WAIT_MS };
  setTimeout(() => {
    for (const listener of listeners) listener();
  });
}

/** Presses the wanted button, now or later, if `actions` has it. Returns how it stops. */
export function offerActions(actions: Element): () => void {
  const press = (): void => {
    if (wanted === null) return;
    const { button: name, address, until } = wanted;
    if (address !== currentAddress() || performance.now() > until) {
      wanted = null;
      return;
    }
    const button = [...actions.querySelectorAll('button')].find(({ textContent }) => textContent === name);
    if (button === undefined) return;
    wanted = null;
    // What the button opens returns the focus to it.
    button.focus();
    button.click();
  };
  listeners.add(press);
  press();
  return () => listeners.delete(press);
}

/**
 * The page table: every page of the side navigation and of the command palette, in order. Each is loaded when it is
 * opened.
 */
import { type ComponentType, type LazyExoticComponent, lazy } from 'react';
import { WaitingCount } from './shell/waiting-count.tsx';

export interface PageRow {
  readonly path: string;
  readonly title: string;
  /** The description of the page in the palette. */
  readonly description: string;
  readonly Page: ComponentType | LazyExoticComponent<ComponentType>;
  /** Shown next to the title in the navigation. */
  readonly Mark?: ComponentType;
}

export const PAGES: readonly [PageRow, ...PageRow[]] = [
  {
    path: '/now',
    title: 'Now',
    description: 'Live activity, pending requests and findings',
    Page: lazy(async () => ({ default: (await import('./pages/now/now-page.tsx')).NowPage })),
  },
  {
    path: '/approvals',
    title: 'Approvals',
    description: 'Requests that wait for an operator',
    Page: lazy(async () => ({ default: (await import('./pages/approvals/approvals-page.tsx')).ApprovalsPage })),
    Mark: WaitingCount,
  },
  {
    path: '/access',
    title: 'Access',
    description: 'Permissions, with their reasons',
    Page: lazy(async () => ({ default: (await import('./pages/access/access-page.tsx')).AccessPage })),
  },
  {
    path: '/credentials',
    title: 'Credentials',
    description: 'Values, versions, targets and exposure',
    Page: lazy(async () => ({ default: (await import('./pages/credentials/credentials-page.tsx')).CredentialsPage })),
  },
  {
    path: '/agents',
    title: 'Agents',
    description: 'Programs that hold leases',
    Page: lazy(async () => ({ default: (await import('./pages/agents/agents-page.tsx')).AgentsPage })),
  },
  {
    path: '/log',
    title: 'Audit log',
    description: 'Every decision, with its receipt',
    Page: lazy(async () => ({ default: (await import('./pages/log/log-page.tsx')).LogPage })),
  },
  {
    path: '/settings',
    title: 'Settings',
    description: 'Operators, key slots, backups, nodes',
    Page: lazy(async () => ({ default: (await import('./pages/settings/settings-page.tsx')).SettingsPage })),
  },
];

/** The command table: the source of help, the command pages, completion and the program. */
import type { Command } from './command.ts';
import { AGENT_COMMANDS } from './commands/agents.ts';
import { APPROVE_COMMANDS } from './commands/approve.ts';
import { AUDIT_COMMANDS } from './commands/audit.ts';
import { backup } from './commands/backup.ts';
import { completion } from './commands/completion.ts';
import { consoleCommand } from './commands/console.ts';
import { CREDENTIAL_COMMANDS } from './commands/credentials.ts';
import { doctor } from './commands/doctor.ts';
import { EXPOSURE_COMMANDS } from './commands/exposure.ts';
import { get } from './commands/get.ts';
import { importCommand } from './commands/import.ts';
import { inject } from './commands/inject.ts';
import { KEY_COMMANDS } from './commands/keys.ts';
import { LEASE_COMMANDS } from './commands/leases.ts';
import { LOCK_COMMANDS } from './commands/lock.ts';
import { mcp } from './commands/mcp.ts';
import { OPERATOR_COMMANDS } from './commands/operators.ts';
import { POLICY_COMMANDS } from './commands/policies.ts';
import { run } from './commands/run.ts';
import { SERVICE_COMMANDS } from './commands/server.ts';
import { SESSION_COMMANDS } from './commands/sessions.ts';
import { TARGET_COMMANDS } from './commands/targets.ts';
import { use } from './commands/use.ts';

export interface Group {
  readonly title: string;
  readonly commands: readonly Command[];
}

export const GROUPS: readonly Group[] = [
  { title: 'Credentials', commands: [get, ...CREDENTIAL_COMMANDS] },
  { title: 'Use without seeing', commands: [use, ...TARGET_COMMANDS] },
  { title: 'Import', commands: [importCommand] },
  { title: 'Programs and models', commands: [run, inject, mcp] },
  { title: 'Policies', commands: POLICY_COMMANDS },
  { title: 'Agents and logins', commands: [...AGENT_COMMANDS, ...SESSION_COMMANDS] },
  { title: 'Operators', commands: [...OPERATOR_COMMANDS, consoleCommand] },
  { title: 'Approvals', commands: APPROVE_COMMANDS },
  { title: 'Leases', commands: LEASE_COMMANDS },
  { title: 'Exposure', commands: EXPOSURE_COMMANDS },
  { title: 'Audit log', commands: AUDIT_COMMANDS },
  { title: 'Keys', commands: [...KEY_COMMANDS, ...LOCK_COMMANDS] },
  { title: 'Service', commands: [...SERVICE_COMMANDS, backup, doctor] },
  { title: 'Shell', commands: [completion] },
];

export const COMMANDS: readonly Command[] = GROUPS.flatMap(({ commands }) => commands);

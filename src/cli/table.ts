/** THE TABLE of commands: help, pages, completions and the program itself are made from it. */
import type { Command } from './command.ts';
import { AGENT_COMMANDS } from './commands/agents.ts';
import { AUDIT_COMMANDS } from './commands/audit.ts';
import { completion } from './commands/completion.ts';
import { CREDENTIAL_COMMANDS } from './commands/credentials.ts';
import { doctor } from './commands/doctor.ts';
import { get } from './commands/get.ts';
import { importCommand } from './commands/import.ts';
import { inject } from './commands/inject.ts';
import { LEASE_COMMANDS } from './commands/leases.ts';
import { mcp } from './commands/mcp.ts';
import { POLICY_COMMANDS } from './commands/policies.ts';
import { run } from './commands/run.ts';
import { scanCommand } from './commands/scan.ts';
import { SERVICE_COMMANDS } from './commands/server.ts';
import { SESSION_COMMANDS } from './commands/sessions.ts';
import type { Group } from './help.ts';

export const GROUPS: readonly Group[] = [
  { title: 'Credentials', commands: [get, ...CREDENTIAL_COMMANDS] },
  { title: 'Moving in', commands: [importCommand, scanCommand] },
  { title: 'Handing values to programs and models', commands: [run, inject, mcp] },
  { title: 'Policies', commands: POLICY_COMMANDS },
  { title: 'Agents, and who asks', commands: [...AGENT_COMMANDS, ...SESSION_COMMANDS] },
  { title: 'Leases', commands: LEASE_COMMANDS },
  { title: 'The audit log', commands: AUDIT_COMMANDS },
  { title: 'The service', commands: [...SERVICE_COMMANDS, doctor] },
  { title: 'Your shell', commands: [completion] },
];

export const COMMANDS: readonly Command[] = GROUPS.flatMap(({ commands }) => commands);

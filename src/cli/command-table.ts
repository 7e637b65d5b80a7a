/**
 * The command table: the source of help, completion and the program. WHY each command is loaded when it is called:
 * loading all of them takes longer than most commands run.
 */
import type { Command, Entry } from './command.ts';

export interface Group {
  readonly title: string;
  readonly entries: readonly Entry[];
}

interface CommandModule {
  readonly COMMANDS: readonly Command[];
}

function from(load: () => Promise<CommandModule>, summaries: Readonly<Record<string, string>>): Entry[] {
  return Object.entries(summaries).map(([name, summary]) => ({
    name,
    summary,
    async load() {
      const command = (await load()).COMMANDS.find((each) => each.name === name);
      if (command === undefined) throw new Error(`the module has no command ${name}`);
      return command;
    },
  }));
}

export const GROUPS: readonly Group[] = [
  {
    title: 'Credentials',
    entries: [
      ...from(() => import('./commands/credentials.ts'), {
        get: 'Retrieve a value under a new lease',
        put: 'Store a value as a new credential or a new version',
        list: 'List credentials, without values',
        history: 'List the kept versions of a credential, without values',
        delete: 'Delete a credential with all its versions, and revoke its leases',
      }),
    ],
  },
  {
    title: 'Use without seeing',
    entries: [
      ...from(() => import('./commands/use.ts'), {
        use: 'Make a request with a credential, without seeing its value',
      }),
      ...from(() => import('./commands/targets.ts'), {
        'target put': 'Set where a credential may be used, and how its value is sent',
        'target show': 'Show where a credential may be used, and how its value is sent',
        'target delete': 'Delete the targets of a credential, which then cannot be used',
      }),
    ],
  },
  {
    title: 'Import',
    entries: [
      ...from(() => import('./commands/import.ts'), {
        import: 'Import secrets from .env, JSON, Vault, OpenBao, 1Password or Bitwarden',
      }),
    ],
  },
  {
    title: 'Programs and models',
    entries: [
      ...from(() => import('./commands/run.ts'), {
        run: 'Run a program that uses credentials unseen, or receives their values',
        inject: 'Replace the references {{leasehold://PATH}} in a template by values',
      }),
      ...from(() => import('./commands/mcp.ts'), {
        mcp: 'Serve credentials to a model over MCP without showing it the values',
      }),
    ],
  },
  {
    title: 'Policies',
    entries: [
      ...from(() => import('./commands/policies.ts'), {
        'policy list': 'List policies',
        'policy show': 'Show a policy',
        'policy put': 'Create or replace a policy',
        'policy delete': 'Delete a policy, effective immediately on every node',
        'policy explain': 'Explain why access is allowed or denied, and how to grant it',
        'policy test': 'Test policies against a file of expected decisions',
        'policy apply': 'Create and replace policies to match the files in a directory',
      }),
    ],
  },
  {
    title: 'Agents and logins',
    entries: [
      ...from(() => import('./commands/agents.ts'), {
        'agent add': 'Register an agent with a new key pair made on this machine',
        'agent list': 'List agents',
        'agent show': 'Show an agent',
        'agent rotate': "Replace an agent's key; for a time the previous one is valid too",
        'agent delete': 'Deregister an agent and end its sessions and leases immediately',
      }),
      ...from(() => import('./commands/sessions.ts'), {
        login: 'Log in and save the session or token for later commands',
        logout: 'Delete the saved login and end its session',
        whoami: 'Show the identity in use and where it comes from',
      }),
    ],
  },
  {
    title: 'Operators',
    entries: [
      ...from(() => import('./commands/operators.ts'), {
        'operator add': 'Add an operator, who signs in by key, passkey or identity',
        'operator invite': 'Print a link with which an operator registers a passkey',
        'operator list': 'List operators',
        'operator show': 'Show an operator',
        'operator set': 'Replace the roles, the description or the identity of an operator',
        'operator rotate': "Replace an operator's key and end its sessions",
        'operator delete': 'Remove an operator and end its sessions and leases immediately',
      }),
      ...from(() => import('./commands/console.ts'), { console: 'Open the console in a browser' }),
    ],
  },
  {
    title: 'Approvals',
    entries: [
      ...from(() => import('./commands/approve.ts'), {
        approve: 'Answer the requests of agents that wait for an approval',
        'approve list': 'List the requests for approval of the last days, newest first',
        'approve show': 'Show a request for approval with the exact request',
        'approve withdraw': 'Withdraw a request for approval, or end the access that it allows',
      }),
    ],
  },
  {
    title: 'Leases',
    entries: [
      ...from(() => import('./commands/leases.ts'), {
        'lease list': 'List leases, newest first',
        'lease show': 'Show a lease',
        'lease renew': 'Renew an active lease',
        'lease revoke': 'Revoke leases immediately, on every node',
      }),
    ],
  },
  {
    title: 'Exposure',
    entries: [
      ...from(() => import('./commands/exposure.ts'), {
        exposure: 'List which agents have seen or used which credentials',
        panic: 'End all leases, sessions and brokered requests',
      }),
    ],
  },
  {
    title: 'Audit log',
    entries: [
      ...from(() => import('./commands/offline.ts'), {
        'audit key': 'Print the key that verifies the audit log; it decrypts no values',
      }),
      ...from(() => import('./commands/audit.ts'), {
        'audit list': 'List audit entries, newest first',
        'audit tail': 'Print the last audit entries, then new ones as they are written',
        'audit verify': 'Verify the MAC chain of the whole audit log',
      }),
      ...from(() => import('./commands/audit-proofs.ts'), {
        'audit export': 'Export all audit entries as JSON lines, oldest first',
        'audit checkpoint': 'Print the newest signed checkpoint of the audit log',
        'audit receipt': 'Print a receipt as proof that the audit log contains an entry',
        'audit accept-rollback': 'Accept that the audit log has lost entries, and end recovery mode',
      }),
    ],
  },
  {
    title: 'Keys',
    entries: [
      ...from(() => import('./commands/keys.ts'), {
        'key slot add': 'Add a key slot, with which the vault can be opened',
        'key slot list': 'List the key slots',
        'key slot remove': 'Remove a key slot, unless it is the last one',
        'key slot test': 'Test whether a key slot opens the vault',
        'key rotate': 'Replace the data key, the root key, or the key of the audit log',
        lock: 'Lock the vault: brokered requests end, and the server forgets the keys',
        unlock: 'Unlock the vault with a passphrase, a share or a root key file',
      }),
    ],
  },
  {
    title: 'Server',
    entries: [
      ...from(() => import('./commands/server.ts'), {
        server: 'Start the server',
        status: 'Show whether the server is reachable and healthy',
      }),
      ...from(() => import('./commands/offline.ts'), {
        restore: 'Restore a backup into an empty data directory or database',
        schema: 'Create or upgrade the schema of a PostgreSQL database',
      }),
      ...from(() => import('./commands/backup.ts'), {
        backup: 'Write an encrypted backup of the vault while it is in use',
      }),
      ...from(() => import('./commands/doctor.ts'), {
        doctor: 'Show the settings in effect, where each comes from, and whether they work',
      }),
    ],
  },
  {
    title: 'Shell',
    entries: from(
      async () => ({ COMMANDS: [(await import('./commands/completion.ts')).completionOf(() => ENTRIES)] }),
      { completion: 'Print a completion script for bash, zsh or fish' },
    ),
  },
];

export const ENTRIES: readonly Entry[] = GROUPS.flatMap(({ entries }) => entries);

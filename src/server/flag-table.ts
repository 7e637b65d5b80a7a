/** The flags of the service, as `--help` lists them. */

interface Flag {
  readonly name: string;
  /** The placeholder after the flag in `--help`; null for a switch. */
  readonly value: string | null;
  readonly help: string;
}

export const FLAGS = [
  { name: 'data-dir', value: 'DIR', help: 'the data directory of the vault (default ~/.leasehold)' },
  {
    name: 'listen',
    value: 'ADDRESS',
    help: 'HOST:PORT, [IPV6]:PORT or unix:PATH (default 127.0.0.1:7700); port 0 picks a free port',
  },
  {
    name: 'database',
    value: 'URL',
    help: 'postgres://… for several nodes; without it the vault is in DIR (also LEASEHOLD_DATABASE_URL)',
  },
  { name: 'database-file', value: 'FILE', help: 'a file with that URL, which keeps its password off the command line' },
  { name: 'no-migrate', value: null, help: 'never change the schema; fail if it is not up to date' },
  { name: 'root-key-file', value: 'FILE', help: 'the root key, 32 bytes as base64 (default DIR/root.key)' },
  { name: 'transit-address', value: 'URL', help: 'Vault or OpenBao whose Transit engine opens a key slot' },
  { name: 'transit-token-file', value: 'FILE', help: 'the token for it' },
  { name: 'transit-ca-file', value: 'FILE', help: 'its certificate authorities in PEM' },
  { name: 'transit-mount', value: 'PATH', help: 'where its engine is mounted (default transit)' },
  { name: 'aws-kms-endpoint', value: 'URL', help: "in place of the region's endpoint of AWS KMS" },
  {
    name: 'admin-token-file',
    value: 'FILE',
    help: "the administrator's token; without it each start generates and prints one",
  },
  {
    name: 'print-token',
    value: 'always|never',
    help: 'whether a start prints the token that it generates (default always); never where output is kept in a log',
  },
  { name: 'admin-retrieve', value: 'allow|deny', help: 'whether the administrator may read values (default allow)' },
  {
    name: 'denials-per-minute',
    value: 'N',
    help: 'recorded denials of one agent; further ones are 429 (default 1200)',
  },
  { name: 'sessions-per-hour', value: 'N', help: 'maximum sessions per agent (default 100000)' },
  { name: 'leases-per-hour', value: 'N', help: 'maximum leases per agent (default 10000000)' },
  {
    name: 'stored-mib-per-hour',
    value: 'N',
    help: 'maximum size of the values that one agent stores, in MiB (default 1024)',
  },
  { name: 'versions-kept', value: 'N', help: 'versions kept of each credential, 1 to 1000 (default 10)' },
  { name: 'tls-cert', value: 'FILE', help: 'certificate chain in PEM, for HTTPS' },
  { name: 'tls-key', value: 'FILE', help: 'its private key in PEM' },
  { name: 'insecure-http', value: null, help: 'allow plain HTTP on an address that other machines can reach' },
  {
    name: 'public-name',
    value: 'NAME,…',
    help: 'Host names that a loopback listener accepts in addition to localhost',
  },
  {
    name: 'trusted-proxy',
    value: 'ADDRESS,…',
    help: 'proxies whose X-Forwarded-For is trusted: addresses or networks',
  },
  {
    name: 'target-networks',
    value: 'CIDR,…',
    help: 'the only internal networks that targets may allow, or none (default: any): see docs/use.md',
  },
  {
    name: 'oidc-issuer',
    value: 'URL',
    help: 'a provider of OpenID Connect at which operators sign in: see docs/operators.md',
  },
  { name: 'oidc-client-id', value: 'ID', help: "the service's name at it" },
  { name: 'oidc-client-secret-file', value: 'FILE', help: "the client's secret; without it a public client" },
  { name: 'oidc-label', value: 'TEXT', help: "the provider's name in the console (default: its host)" },
  {
    name: 'metrics-token-file',
    value: 'FILE',
    help: 'a token that GET /metrics needs; without it clients on this machine may read the metrics',
  },
  { name: 'log-stream', value: '[NAME=]URL,…', help: 'where to send the audit log: see docs/monitoring.md' },
  { name: 'log-stream-secret-file', value: 'FILE', help: 'the secret (whsec_…) with which webhooks are signed' },
  { name: 'log-stream-token-file', value: 'FILE', help: 'the bearer token for webhooks' },
  { name: 'log-stream-ca-file', value: 'FILE', help: 'authorities in PEM for the receivers of log streams' },
  {
    name: 'accept-open-modes',
    value: null,
    help: 'start even if other users may read the data directory, because its file system keeps no modes',
  },
  { name: 'accept-clock', value: null, help: 'start even if the clock is behind the log' },
  {
    name: 'accept-rollback',
    value: null,
    help: 'serve the vault even if the log has lost entries or its rollback marker is missing; the start records it',
  },
  {
    name: 'checkpoint-file',
    value: 'FILE,…',
    help: 'also append signed checkpoints of the log to these files; startup compares the log with them',
  },
  { name: 'approval-webhook', value: 'URL', help: 'where to post requests for approval: see docs/approvals.md' },
  { name: 'approval-webhook-secret-file', value: 'FILE', help: 'the secret (whsec_…) with which it is signed' },
  {
    name: 'console-url',
    value: 'URL',
    help: 'https://HOST under which browsers reach the service, for links (default: the address that it listens on)',
  },
  { name: 'log-level', value: 'LEVEL', help: 'debug, info, warn, error or silent (default info)' },
] as const satisfies readonly Flag[];

export type FlagName = (typeof FLAGS)[number]['name'];

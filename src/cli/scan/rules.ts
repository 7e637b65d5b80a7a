/**
 * THE TABLE of key-shaped strings. Each pattern begins where no letter of its own kind stands before it, and no two of its parts can
 * take the same characters, so that a text costs its length, however hostile. SOURCE: what each service says of its keys.
 */

export interface Rule {
  readonly name: string;
  /** A text without it holds none: looked for first, because that is fast. */
  readonly keyword: string;
  readonly pattern: RegExp;
  /** How many characters, 4 at most, of its well-known beginning may be shown. */
  readonly shown: 0 | 2 | 3 | 4;
  /** What must not look like a placeholder; the whole match where it is left out. */
  readonly secretGroup?: number;
}

export const RULES: readonly Rule[] = [
  { name: 'leasehold-token', keyword: 'lh', pattern: /(?<![\w-])lh[as]_[\w-]{20,}/g, shown: 4 },
  {
    name: 'aws-access-key',
    keyword: 'A',
    pattern: /(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z2-7]{16}(?![A-Za-z0-9])/g,
    shown: 4,
  },
  { name: 'github-token', keyword: 'gh', pattern: /(?<![\w-])gh[oprsu]_[A-Za-z0-9]{36,}/g, shown: 4 },
  { name: 'github-fine-grained-token', keyword: 'github_pat_', pattern: /(?<![\w-])github_pat_\w{22,}/g, shown: 4 },
  {
    name: 'gitlab-token',
    keyword: 'gl',
    pattern: /(?<![\w-])gl(?:pat|dt|rt|ptt|cbt|ft|soat|agent|imt|oas)-[\w-]{20,}/g,
    shown: 4,
  },
  { name: 'slack-token', keyword: 'xox', pattern: /(?<![\w-])xox[abeoprs]-[\w-]{10,}/g, shown: 4 },
  { name: 'slack-app-token', keyword: 'xapp-', pattern: /(?<![\w-])xapp-\d-[\w-]{10,}/g, shown: 4 },
  {
    name: 'slack-webhook',
    keyword: 'hooks.slack.com',
    pattern: /(?<![\w.])hooks\.slack\.com\/(?:services|workflows)\/[\w/]{20,}/g,
    shown: 0,
  },
  { name: 'stripe-key', keyword: 'k_', pattern: /(?<![\w-])[rs]k_(?:live|test)_[A-Za-z0-9]{10,}/g, shown: 3 },
  { name: 'stripe-webhook-secret', keyword: 'whsec_', pattern: /(?<![\w-])whsec_[A-Za-z0-9+/=]{24,}/g, shown: 4 },
  { name: 'anthropic-key', keyword: 'sk-ant-', pattern: /(?<![\w-])sk-ant-[a-z]+\d\d-[\w-]{20,}/g, shown: 4 },
  { name: 'openrouter-key', keyword: 'sk-or-', pattern: /(?<![\w-])sk-or-v1-[0-9a-f]{40,}/g, shown: 4 },
  {
    name: 'openai-key',
    keyword: 'sk-',
    pattern: /(?<![\w-])sk-(?:(?:proj|svcacct|admin|None)-[\w-]{20,}|[A-Za-z0-9]{32,})/g,
    shown: 3,
  },
  { name: 'groq-key', keyword: 'gsk_', pattern: /(?<![\w-])gsk_[A-Za-z0-9]{32,}/g, shown: 4 },
  { name: 'xai-key', keyword: 'xai-', pattern: /(?<![\w-])xai-[A-Za-z0-9]{40,}/g, shown: 4 },
  { name: 'hugging-face-token', keyword: 'hf_', pattern: /(?<![\w-])hf_[A-Za-z0-9]{30,}/g, shown: 3 },
  { name: 'replicate-token', keyword: 'r8_', pattern: /(?<![\w-])r8_[A-Za-z0-9]{32,}/g, shown: 3 },
  { name: 'google-api-key', keyword: 'AIza', pattern: /(?<![\w-])AIza[\w-]{35}(?![\w-])/g, shown: 4 },
  { name: 'google-oauth-secret', keyword: 'GOCSPX-', pattern: /(?<![\w-])GOCSPX-[\w-]{24,}/g, shown: 4 },
  { name: 'google-access-token', keyword: 'ya29.', pattern: /(?<![\w-])ya29\.[\w-]{20,}/g, shown: 4 },
  { name: 'npm-token', keyword: 'npm_', pattern: /(?<![\w-])npm_[A-Za-z0-9]{36,}/g, shown: 4 },
  { name: 'pypi-token', keyword: 'pypi-', pattern: /(?<![\w-])pypi-[\w-]{50,}/g, shown: 4 },
  { name: 'rubygems-key', keyword: 'rubygems_', pattern: /(?<![\w-])rubygems_[0-9a-f]{40,}/g, shown: 4 },
  { name: 'docker-token', keyword: 'dckr_', pattern: /(?<![\w-])dckr_(?:pat|oat)_[\w-]{20,}/g, shown: 4 },
  { name: 'digitalocean-token', keyword: 'do', pattern: /(?<![\w-])do[opr]_v1_[0-9a-f]{40,}/g, shown: 4 },
  { name: 'vault-token', keyword: 'hv', pattern: /(?<![\w-])hv[bsr]\.[\w-]{24,}/g, shown: 4 },
  { name: 'doppler-token', keyword: 'dp.', pattern: /(?<![\w-])dp\.[a-z]{2,6}\.[\w-]{40,}/g, shown: 3 },
  { name: '1password-token', keyword: 'ops_eyJ', pattern: /(?<![\w-])ops_eyJ[\w-]{40,}/g, shown: 4 },
  { name: 'sendgrid-key', keyword: 'SG.', pattern: /(?<![\w-])SG\.[\w-]{16,32}\.[\w-]{32,}/g, shown: 3 },
  { name: 'shopify-token', keyword: 'shp', pattern: /(?<![\w-])shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32,}/g, shown: 4 },
  { name: 'linear-key', keyword: 'lin_api_', pattern: /(?<![\w-])lin_api_[A-Za-z0-9]{32,}/g, shown: 4 },
  { name: 'tailscale-key', keyword: 'tskey-', pattern: /(?<![\w-])tskey-[a-z]+-[\w-]{16,}/g, shown: 4 },
  { name: 'databricks-token', keyword: 'dapi', pattern: /(?<![\w-])dapi[0-9a-f]{32}(?:-\d)?(?![\w-])/g, shown: 4 },
  { name: 'telegram-token', keyword: ':AA', pattern: /(?<![\w:-])\d{8,10}:AA[\w-]{33}(?![\w-])/g, shown: 0 },
  { name: 'azure-storage-key', keyword: 'AccountKey=', pattern: /(?<!\w)AccountKey=[A-Za-z0-9+/]{86}==/g, shown: 0 },
  { name: 'age-key', keyword: 'AGE-SECRET-KEY-', pattern: /(?<![\w-])AGE-SECRET-KEY-1[A-Z0-9]{50,}/g, shown: 4 },
  {
    name: 'private-key',
    keyword: 'PRIVATE KEY',
    // A file that only speaks of such keys has no base64 behind the heading.
    pattern:
      /-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:\\[rn]|[\s"',]){1,40}[A-Za-z0-9+/=]{16}/g,
    shown: 0,
  },
  { name: 'jwt', keyword: 'eyJ', pattern: /(?<![\w.-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{16,}/g, shown: 3 },
  {
    name: 'url-with-password',
    keyword: '://',
    pattern:
      /(?<![A-Za-z0-9+.-])[a-z][a-z0-9+.-]{1,20}:\/\/[^\s/:@"'`<>{}$]{0,64}:([^\s/@"'`<>{}$]{3,256})@[A-Za-z0-9[]/g,
    shown: 0,
    secretGroup: 1,
  },
];

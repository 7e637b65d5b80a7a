/**
 * Patterns of secrets with a recognisable form. `run` withholds variables that contain one, `import` reads them from a
 * .env file, and a masker masks them inside longer values. The key forms of the catalogue's services are declared
 * there. INVARIANT: a match begins where no character of the same kind precedes it, and no two adjacent parts match the
 * same characters, so that the time for a text is linear in its length. SOURCE: the services' own documentation.
 */
import { SERVICES } from '../vault/catalogue/catalogue.ts';

export interface SecretPattern {
  readonly name: string;
  /** A text without this keyword cannot match. It is checked first, because that is fast. */
  readonly keyword: string;
  /** A global pattern. The secret is the group `secret`, or the whole match if the pattern has no such group. */
  readonly pattern: RegExp;
}

type Row = readonly [name: string, keyword: string, pattern: RegExp];

const TOKENS: readonly Row[] = [
  ['leasehold-token', 'lh', /(?<![\w-])lh[as]_[\w-]{20,}/g],
  ['1password-token', 'ops_eyJ', /(?<![\w-])ops_eyJ[\w-]{40,}/g],
  [
    '1password-secret-key',
    'A3-',
    /(?<![\w-])A3-[A-Z0-9]{6}-(?:[A-Z0-9]{6}-[A-Z0-9]{5}|[A-Z0-9]{11})(?:-[A-Z0-9]{5}){3}(?!\w)/g,
  ],
  ['adobe-client-secret', 'p8e-', /(?<![\w-])p8e-[A-Za-z0-9]{32}(?!\w)/g],
  ['age-key', 'AGE-SECRET-KEY-', /(?<![\w-])AGE-SECRET-KEY-1[A-Z0-9]{50,}/g],
  ['airtable-token', 'pat', /(?<![\w-])pat[A-Za-z0-9]{14}\.[a-f0-9]{64}(?!\w)/g],
  ['alibaba-access-key', 'LTAI', /(?<![\w-])LTAI[A-Za-z0-9]{20}(?!\w)/g],
  ['artifactory-key', 'AKCp', /(?<![\w-])AKCp[A-Za-z0-9]{60,}/g],
  ['artifactory-token', 'cmVmd', /(?<![\w-])cmVmd[A-Za-z0-9]{59}(?!\w)/g],
  [
    'authress-key',
    '.acc',
    /(?<![\w-])(?:sc|ext|scauth|authress)_[a-z0-9]{5,30}\.[a-z0-9]{4,6}\.acc[_-][a-z0-9-]{10,32}\.[\w+/=-]{30,}/gi,
  ],
  ['aws-bedrock-key', 'ABSK', /(?<![\w+/])ABSK[A-Za-z0-9+/]{100,}={0,2}/g],
  ['azure-client-secret', 'Q~', /(?<![\w~.-])[\w~.]{3}\dQ~[\w~.-]{31,34}(?![\w~.-])/g],
  ['azure-key', 'Key=', /(?<!\w)(?:AccountKey|SharedAccessKey)=(?<secret>[A-Za-z0-9+/]{40,}={0,2})/g],
  ['azure-signature', 'sig=', /(?<=[?&])sig=(?<secret>[\w%+/-]{40,}={0,2})/g],
  ['buildkite-token', 'bkua_', /(?<![\w-])bkua_[a-f0-9]{40}(?!\w)/g],
  ['circleci-token', 'CCIP', /(?<![\w-])CCIP(?:AT|RJ)_[A-Za-z0-9]{20,}_[a-f0-9]{40}/g],
  ['clickhouse-key', '4b1d', /(?<![\w-])4b1d[A-Za-z0-9]{38}(?!\w)/g],
  ['clojars-token', 'CLOJARS_', /(?<![\w-])CLOJARS_[A-Za-z0-9]{60}(?!\w)/gi],
  ['cloudflare-origin-key', 'v1.0-', /(?<![\w-])v1\.0-[a-f0-9]{24}-[a-f0-9]{146}(?!\w)/g],
  ['contentful-token', 'CFPAT-', /(?<![\w-])CFPAT-[\w-]{40,}/g],
  ['databricks-token', 'dapi', /(?<![\w-])dapi[0-9a-f]{32}(?:-\d)?(?![\w-])/g],
  ['digitalocean-token', 'o', /(?<![\w-])do[opr]_v1_[0-9a-f]{40,}/gi],
  ['discord-webhook', '/api/webhooks/', /(?<![\w-])discord(?:app)?\.com\/api\/webhooks\/\d{5,20}\/[\w-]{16,}/g],
  ['docker-token', 'dckr_', /(?<![\w-])dckr_(?:pat|oat)_[\w-]{20,}/g],
  ['doppler-token', 'dp.', /(?<![\w-])dp\.[a-z]{2,6}\.[\w-]{40,}/g],
  ['dropbox-token', 'sl.', /(?<![\w.-])sl\.[\w=-]{130,}/g],
  ['duffel-token', 'duffel_', /(?<![\w-])duffel_(?:test|live)_[\w=-]{43}/g],
  ['dynatrace-token', 'dt0c01.', /(?<![\w-])dt0c01\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}(?!\w)/g],
  ['easypost-key', 'EZ', /(?<![\w-])EZ[AT]K[A-Za-z0-9]{54}(?!\w)/g],
  ['facebook-page-token', 'EAA', /(?<![\w-])EAA[MC][A-Za-z0-9]{100,}/g],
  ['figma-token', 'figd_', /(?<![\w-])figd_[\w-]{40,}/g],
  ['flutterwave-key', 'FLWSECK', /(?<![\w-])FLWSECK(?:_TEST)?-[A-Za-z0-9]{12,32}(?:-X)?(?!\w)/g],
  ['fly-token', 'f', /(?<![\w-])(?:fo1_[\w-]{43}|fm(?:1[ar]|2)_[A-Za-z0-9+/]{100,}={0,3})/g],
  ['frameio-token', 'fio-u-', /(?<![\w-])fio-u-[\w=-]{60,}/g],
  ['gitlab-runner-token', 'GR1348941', /(?<![\w-])GR1348941[\w-]{20,}/g],
  ['google-oauth-secret', 'GOCSPX-', /(?<![\w-])GOCSPX-[\w-]{24,}/g],
  ['grafana-token', 'gl', /(?<![\w-])gl(?:sa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}|c_[A-Za-z0-9+/]{32,}={0,3})/g],
  ['grafana-api-key', 'eyJrIjoi', /(?<![\w.-])eyJrIjoi[A-Za-z0-9]{70,}={0,3}/g],
  ['groq-key', 'gsk_', /(?<![\w-])gsk_[A-Za-z0-9]{32,}/g],
  ['harness-key', 'at.', /(?<![\w-])[ps]at\.[\w-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}(?!\w)/g],
  ['heroku-key', 'HRKU-', /(?<![\w-])HRKU-[\w-]{36,}/g],
  ['infracost-key', 'ico-', /(?<![\w.-])ico-[A-Za-z0-9]{32}(?!\w)/g],
  ['jwt', 'eyJ', /(?<![\w.-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{16,}/g],
  ['linear-oauth-token', 'lin_', /(?<![\w-])lin_oauth_[A-Za-z0-9]{32,}/g],
  ['mailgun-key', 'key-', /(?<![\w-])key-[a-f0-9]{32}(?!\w)/g],
  ['maxmind-key', '_mmk', /(?<![\w-])[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk(?!\w)/g],
  ['new-relic-key', 'NRAK-', /(?<![\w-])NRAK-[A-Za-z0-9]{27}(?!\w)/gi],
  ['octopus-key', 'API-', /(?<![\w-])API-[A-Z0-9]{26}(?!\w)/g],
  ['openshift-token', 'sha256~', /(?<![\w-])sha256~[\w-]{43}(?![\w-])/g],
  ['perplexity-key', 'pplx-', /(?<![\w-])pplx-[A-Za-z0-9]{40,}/g],
  ['planetscale-token', 'pscale_', /(?<![\w-])pscale_(?:tkn|oauth|pw)_[\w=.-]{32,}/gi],
  ['postman-key', 'PMAK-', /(?<![\w-])PMAK-[A-Fa-f0-9]{24}-[A-Fa-f0-9]{34}/g],
  ['prefect-token', 'pnu_', /(?<![\w-])pnu_[A-Za-z0-9]{36}(?!\w)/g],
  ['pulumi-token', 'pul-', /(?<![\w-])pul-[a-f0-9]{40}(?!\w)/g],
  ['readme-token', 'rdme_', /(?<![\w-])rdme_[a-z0-9]{70}/g],
  ['rubygems-key', 'rubygems_', /(?<![\w-])rubygems_[0-9a-f]{40,}/g],
  ['scalingo-token', 'tk-us-', /(?<![\w-])tk-us-[\w-]{48}/g],
  ['sendinblue-key', 'xkeysib-', /(?<![\w-])xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}/g],
  ['settlemint-token', 'sm_', /(?<![\w-])sm_[aps]at_[A-Za-z0-9]{16}(?!\w)/g],
  ['shippo-token', 'shippo_', /(?<![\w-])shippo_(?:live|test)_[a-fA-F0-9]{40}/g],
  ['shopify-token', 'shp', /(?<![\w-])shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32,}/g],
  ['slack-webhook', 'hooks.slack.com', /(?<![\w.])hooks\.slack\.com\/(?:services|workflows|triggers)\/[\w/+]{16,}/g],
  ['sourcegraph-token', 'sgp_', /(?<![\w-])sgp_(?:(?:[a-fA-F0-9]{16}|local)_)?[a-fA-F0-9]{40}(?!\w)/g],
  ['square-token', 'sq0', /(?<![\w-])sq0(?:atp|csp)-[\w-]{22,}/g],
  ['square-access-token', 'EAAA', /(?<![\w-])EAAA[\w-]{56,60}(?![\w-])/g],
  ['stripe-webhook-secret', 'whsec_', /(?<![\w-])whsec_[A-Za-z0-9+/=]{24,}/g],
  ['supabase-token', 'sbp_', /(?<![\w-])sbp_[a-f0-9]{40}/g],
  ['tailscale-key', 'tskey-', /(?<![\w-])tskey-[a-z]+-[\w-]{16,}/g],
  [
    'teams-webhook',
    '/IncomingWebhook/',
    /(?<![\w-])webhook\.office\.com\/webhookb2\/[\w@-]{36,}\/IncomingWebhook\/[\w/-]{32,}/g,
  ],
  ['telegram-token', ':A', /(?<![\w:-])\d{5,16}:A[\w-]{34}(?![\w-])/g],
  ['terraform-token', '.atlasv1.', /(?<![\w-])[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,70}/g],
  ['typeform-token', 'tfp_', /(?<![\w-])tfp_[\w.=-]{59}/g],
  ['vault-token', 'hv', /(?<![\w-])hv[bsr]\.[\w-]{24,}/g],
  ['vault-legacy-token', 's.', /(?<![\w./-])s\.(?=[A-Za-z]{0,23}\d)[A-Za-z0-9]{24}(?![\w.(-])/g],
  ['xai-key', 'xai-', /(?<![\w-])xai-[A-Za-z0-9]{40,}/g],
  ['yandex-key', 'AQVN', /(?<![\w-])AQVN[\w-]{35,38}(?![\w-])/g],
];

const STRUCTURES: readonly Row[] = [
  [
    // The heading alone is not a finding, because documents quote it. Encrypted keys have lines such as DEK-Info first.
    // WHY two forms of such a line: it ends with the line or, where spaces replaced the breaks, at the first space. An
    // end at any place would make the time grow with the fourth power of the line's length.
    'private-key',
    'PRIVATE KEY',
    /-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:\\[rn]|[\s"',]){1,40}(?:[A-Za-z-]{1,20}: (?:[^\r\n\\]{1,80}(?=\\[rn]|[\r\n])|[^\s\\"']{1,80}(?=[ \t"']))(?:\\[rn]|[\s"',]){1,8}){0,4}(?<secret>[A-Za-z0-9+/=]{16}[A-Za-z0-9+/=\s\\"',]*)/g,
  ],
  ['putty-private-key', 'Private-Lines: ', /^Private-Lines: \d{1,4}\r?\n(?<secret>[A-Za-z0-9+/=\r\n]{16,})/gm],
  [
    'url-with-password',
    '://',
    /(?<![A-Za-z0-9+.-])[a-z][a-z0-9+.-]{1,20}:\/\/[^\s/:@"'`<>{}$]{0,64}:(?<secret>[^\s/@"'`<>]{1,256})@[^\s@"'`<>]/gi,
  ],
  // A whole value, as some programs accept a proxy.
  ['host-with-password', '@', /^[^\s/:@]{1,64}:(?<secret>[^\s/@]{1,256})@[\w.-]{1,253}(?::\d{1,5})?\/?$/g],
  ['dsn-with-password', '@', /(?<![\w.-])[\w.-]{1,64}:(?<secret>[^\s:@"'`<>]{1,256})@(?:tcp|unix)\(/g],
  [
    'connection-string',
    '=',
    /(?:^(?=[^;"'`\r\n]{1,300};[^;=\r\n]{1,40}=)|(?<![\w-])(?:server|data source|host|user id|uid|user|username|database|initial catalog|driver|address) ?=[^;"'`\r\n]{1,100};(?:[^;="'`\r\n]{1,40}=[^;"'`\r\n]{0,100};){0,6}) ?(?:password|pwd) ?= ?(?<secret>[^;"'`\r\n]{1,256})/gi,
  ],
  [
    'netrc-password',
    'password',
    /(?<![\w-])(?:machine\s{1,20}[\w.:-]{1,253}|default)(?:\s{1,20}(?:login|account)\s{1,20}\S{1,128}){1,2}\s{1,20}password\s{1,20}(?<secret>\S{1,256})/g,
  ],
];

const FIELDS: readonly Row[] = [
  ['docker-login', '"auth"', /"auth"\s{0,3}:\s{0,3}"(?<secret>[A-Za-z0-9+/]{8,}={0,2})"/g],
  [
    'authorization-header',
    'uthorization',
    /(?<!\w)Authorization["']?\s{0,3}[:=]\s{0,3}["']?(?:Basic|Bearer|Token)\s(?<secret>[\w.~+/-]{8,}={0,2})/gi,
  ],
  ['curl-user', 'curl', /(?<=\s)(?:-u|--user)[ =]{1,3}["']?[^\s"':]{1,64}:(?<secret>[^\s"'`]{3,256})/g],
  [
    'xml-password',
    '<',
    /<(?:[A-Za-z][\w.-]{0,40}:)?(?:password|passphrase|api-?key|client-?secret|secret-?key)>(?<secret>[^<\s]{3,256})</gi,
  ],
  ['xml-setting', '<add', /<add\s{1,8}key="[\w.:-]{0,40}password"\s{1,8}value="(?<secret>[^"\s]{3,256})"/gi],
];

const CATALOGUE: readonly SecretPattern[] = SERVICES.flatMap(({ name, key }) =>
  key.forms.map(({ keyword, pattern }) => ({ name, keyword, pattern })),
);

export const SECRET_PATTERNS: readonly SecretPattern[] = [
  ...CATALOGUE,
  ...[...TOKENS, ...STRUCTURES, ...FIELDS].map(([name, keyword, pattern]) => ({ name, keyword, pattern })),
];

/** Yields secrets in the order of the patterns; they may overlap. */
export function* findSecrets(text: string): Generator<string> {
  for (const { keyword, pattern } of SECRET_PATTERNS) {
    if (!text.includes(keyword)) continue;
    for (const match of text.matchAll(pattern)) yield match.groups?.['secret'] ?? match[0];
  }
}

/** Characters of a variable that are checked. The limit bounds the cost of a large one. */
const MAX_CHECKED_LENGTH = 16 * 1024;

/** Whether the value of a variable is or contains a secret. Placeholders count, because a program rarely needs them. */
export function holdsSecret(value: string): boolean {
  return !findSecrets(value.slice(0, MAX_CHECKED_LENGTH)).next().done;
}

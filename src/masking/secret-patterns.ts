/**
 * Patterns of secrets with a recognisable form: `scan` reports them, `run` withholds variables that contain one, and a
 * masker masks them inside longer values. INVARIANT: a match begins where no character of the same kind precedes it,
 * and no two adjacent parts match the same characters, so that the time for a text is linear in its length. SOURCE: the
 * services' own documentation.
 */

export interface SecretPattern {
  readonly name: string;
  /** A text without it has no match: checked first, because that is fast. */
  readonly keyword: string;
  /** Global. The secret is the group `secret`, or the whole match where the pattern has no such group. */
  readonly pattern: RegExp;
  /** How many characters, 4 at most, of the well-known prefix may be shown. */
  readonly shown: 0 | 2 | 3 | 4;
  /** Whether ordinary text has this form too, so that a match in a file counts only when the secret looks random. */
  readonly isCommonForm: boolean;
}

export interface SecretMatch {
  readonly pattern: SecretPattern;
  readonly from: number;
  readonly to: number;
  readonly secret: string;
}

type Row = readonly [name: string, keyword: string, shown: SecretPattern['shown'], pattern: RegExp];

const TOKENS: readonly Row[] = [
  ['leasehold-token', 'lh', 4, /(?<![\w-])lh[as]_[\w-]{20,}/g],
  ['1password-token', 'ops_eyJ', 4, /(?<![\w-])ops_eyJ[\w-]{40,}/g],
  [
    '1password-secret-key',
    'A3-',
    3,
    /(?<![\w-])A3-[A-Z0-9]{6}-(?:[A-Z0-9]{6}-[A-Z0-9]{5}|[A-Z0-9]{11})(?:-[A-Z0-9]{5}){3}(?!\w)/g,
  ],
  ['adobe-client-secret', 'p8e-', 4, /(?<![\w-])p8e-[A-Za-z0-9]{32}(?!\w)/g],
  ['age-key', 'AGE-SECRET-KEY-', 4, /(?<![\w-])AGE-SECRET-KEY-1[A-Z0-9]{50,}/g],
  ['airtable-token', 'pat', 3, /(?<![\w-])pat[A-Za-z0-9]{14}\.[a-f0-9]{64}(?!\w)/g],
  ['alibaba-access-key', 'LTAI', 4, /(?<![\w-])LTAI[A-Za-z0-9]{20}(?!\w)/g],
  ['anthropic-key', 'sk-ant-', 4, /(?<![\w-])sk-ant-[\w-]{24,}/g],
  ['artifactory-key', 'AKCp', 4, /(?<![\w-])AKCp[A-Za-z0-9]{60,}/g],
  ['artifactory-token', 'cmVmd', 4, /(?<![\w-])cmVmd[A-Za-z0-9]{59}(?!\w)/g],
  ['atlassian-token', 'ATATT3', 4, /(?<![\w-])ATATT3[\w=-]{100,}/g],
  [
    'authress-key',
    '.acc',
    0,
    /(?<![\w-])(?:sc|ext|scauth|authress)_[a-z0-9]{5,30}\.[a-z0-9]{4,6}\.acc[_-][a-z0-9-]{10,32}\.[\w+/=-]{30,}/gi,
  ],
  ['aws-access-key', 'A', 4, /(?<![A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?![A-Za-z0-9])/g],
  ['aws-bedrock-key', 'ABSK', 4, /(?<![\w+/])ABSK[A-Za-z0-9+/]{100,}={0,2}/g],
  ['azure-client-secret', 'Q~', 0, /(?<![\w~.-])[\w~.]{3}\dQ~[\w~.-]{31,34}(?![\w~.-])/g],
  ['azure-key', 'Key=', 0, /(?<!\w)(?:AccountKey|SharedAccessKey)=(?<secret>[A-Za-z0-9+/]{40,}={0,2})/g],
  ['azure-signature', 'sig=', 0, /(?<=[?&])sig=(?<secret>[\w%+/-]{40,}={0,2})/g],
  ['buildkite-token', 'bkua_', 4, /(?<![\w-])bkua_[a-f0-9]{40}(?!\w)/g],
  ['circleci-token', 'CCIP', 4, /(?<![\w-])CCIP(?:AT|RJ)_[A-Za-z0-9]{20,}_[a-f0-9]{40}/g],
  ['clickhouse-key', '4b1d', 4, /(?<![\w-])4b1d[A-Za-z0-9]{38}(?!\w)/g],
  ['clojars-token', 'CLOJARS_', 4, /(?<![\w-])CLOJARS_[A-Za-z0-9]{60}(?!\w)/gi],
  ['cloudflare-origin-key', 'v1.0-', 4, /(?<![\w-])v1\.0-[a-f0-9]{24}-[a-f0-9]{146}(?!\w)/g],
  ['contentful-token', 'CFPAT-', 4, /(?<![\w-])CFPAT-[\w-]{40,}/g],
  ['databricks-token', 'dapi', 4, /(?<![\w-])dapi[0-9a-f]{32}(?:-\d)?(?![\w-])/g],
  ['digitalocean-token', 'o', 4, /(?<![\w-])do[opr]_v1_[0-9a-f]{40,}/gi],
  ['discord-webhook', '/api/webhooks/', 0, /(?<![\w-])discord(?:app)?\.com\/api\/webhooks\/\d{5,20}\/[\w-]{16,}/g],
  ['discord-bot-token', '.', 0, /(?<![\w.-])[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,38}(?![\w-])/g],
  ['docker-token', 'dckr_', 4, /(?<![\w-])dckr_(?:pat|oat)_[\w-]{20,}/g],
  ['doppler-token', 'dp.', 3, /(?<![\w-])dp\.[a-z]{2,6}\.[\w-]{40,}/g],
  ['dropbox-token', 'sl.', 3, /(?<![\w.-])sl\.[\w=-]{130,}/g],
  ['duffel-token', 'duffel_', 4, /(?<![\w-])duffel_(?:test|live)_[\w=-]{43}/g],
  ['dynatrace-token', 'dt0c01.', 4, /(?<![\w-])dt0c01\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}(?!\w)/g],
  ['easypost-key', 'EZ', 4, /(?<![\w-])EZ[AT]K[A-Za-z0-9]{54}(?!\w)/g],
  ['facebook-page-token', 'EAA', 3, /(?<![\w-])EAA[MC][A-Za-z0-9]{100,}/g],
  ['figma-token', 'figd_', 4, /(?<![\w-])figd_[\w-]{40,}/g],
  ['flutterwave-key', 'FLWSECK', 4, /(?<![\w-])FLWSECK(?:_TEST)?-[A-Za-z0-9]{12,32}(?:-X)?(?!\w)/g],
  ['fly-token', 'f', 3, /(?<![\w-])(?:fo1_[\w-]{43}|fm(?:1[ar]|2)_[A-Za-z0-9+/]{100,}={0,3})/g],
  ['frameio-token', 'fio-u-', 4, /(?<![\w-])fio-u-[\w=-]{60,}/g],
  ['github-fine-grained-token', 'github_pat_', 4, /(?<![\w-])github_pat_\w{22,}/g],
  ['github-token', 'gh', 4, /(?<![\w-])gh[oprsu]_[A-Za-z0-9]{36,}/g],
  ['gitlab-runner-token', 'GR1348941', 4, /(?<![\w-])GR1348941[\w-]{20,}/g],
  ['gitlab-token', 'gl', 4, /(?<![\w-])gl(?:pat|dt|rt|ptt|cbt|ft|ffct|soat|agent|imt|oas)-[\w.-]{20,}/g],
  ['google-access-token', 'ya29.', 4, /(?<![\w-])ya29\.[\w-]{20,}/g],
  ['google-api-key', 'AIza', 4, /(?<![\w-])AIza[\w-]{35}(?![\w-])/g],
  ['google-oauth-secret', 'GOCSPX-', 4, /(?<![\w-])GOCSPX-[\w-]{24,}/g],
  ['grafana-token', 'gl', 4, /(?<![\w-])gl(?:sa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}|c_[A-Za-z0-9+/]{32,}={0,3})/g],
  ['grafana-api-key', 'eyJrIjoi', 3, /(?<![\w.-])eyJrIjoi[A-Za-z0-9]{70,}={0,3}/g],
  ['groq-key', 'gsk_', 4, /(?<![\w-])gsk_[A-Za-z0-9]{32,}/g],
  ['harness-key', 'at.', 4, /(?<![\w-])[ps]at\.[\w-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}(?!\w)/g],
  ['heroku-key', 'HRKU-', 4, /(?<![\w-])HRKU-[\w-]{36,}/g],
  ['infracost-key', 'ico-', 4, /(?<![\w.-])ico-[A-Za-z0-9]{32}(?!\w)/g],
  ['jwt', 'eyJ', 3, /(?<![\w.-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{16,}/g],
  ['linear-key', 'lin_', 4, /(?<![\w-])lin_(?:api|oauth)_[A-Za-z0-9]{32,}/g],
  ['mailgun-key', 'key-', 4, /(?<![\w-])key-[a-f0-9]{32}(?!\w)/g],
  ['maxmind-key', '_mmk', 0, /(?<![\w-])[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk(?!\w)/g],
  ['new-relic-key', 'NRAK-', 4, /(?<![\w-])NRAK-[A-Za-z0-9]{27}(?!\w)/gi],
  ['notion-token', 'ntn_', 4, /(?<![\w-])ntn_[A-Za-z0-9]{40,}/g],
  ['npm-token', 'npm_', 4, /(?<![\w-])npm_[A-Za-z0-9]{36,}/g],
  ['octopus-key', 'API-', 4, /(?<![\w-])API-[A-Z0-9]{26}(?!\w)/g],
  ['openai-key', 'sk-', 3, /(?<![\w-])sk-(?:(?:proj|svcacct|admin|None)-[\w-]{20,}|[A-Za-z0-9]{32,})/g],
  ['openrouter-key', 'sk-or-', 4, /(?<![\w-])sk-or-v1-[0-9a-f]{40,}/g],
  ['openshift-token', 'sha256~', 0, /(?<![\w-])sha256~[\w-]{43}(?![\w-])/g],
  ['perplexity-key', 'pplx-', 4, /(?<![\w-])pplx-[A-Za-z0-9]{40,}/g],
  ['planetscale-token', 'pscale_', 4, /(?<![\w-])pscale_(?:tkn|oauth|pw)_[\w=.-]{32,}/gi],
  ['postman-key', 'PMAK-', 4, /(?<![\w-])PMAK-[A-Fa-f0-9]{24}-[A-Fa-f0-9]{34}/g],
  ['prefect-token', 'pnu_', 4, /(?<![\w-])pnu_[A-Za-z0-9]{36}(?!\w)/g],
  ['pulumi-token', 'pul-', 4, /(?<![\w-])pul-[a-f0-9]{40}(?!\w)/g],
  ['pypi-token', 'pypi-', 4, /(?<![\w-])pypi-[\w-]{50,}/g],
  ['readme-token', 'rdme_', 4, /(?<![\w-])rdme_[a-z0-9]{70}/g],
  ['replicate-token', 'r8_', 3, /(?<![\w-])r8_[A-Za-z0-9]{32,}/g],
  ['rubygems-key', 'rubygems_', 4, /(?<![\w-])rubygems_[0-9a-f]{40,}/g],
  ['scalingo-token', 'tk-us-', 4, /(?<![\w-])tk-us-[\w-]{48}/g],
  ['sendgrid-key', 'SG.', 3, /(?<![\w-])SG\.[\w=-]{16,32}\.[\w=-]{32,}/g],
  ['sendinblue-key', 'xkeysib-', 4, /(?<![\w-])xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}/g],
  ['sentry-token', 'sntry', 4, /(?<![\w-])sntry(?:u_[a-f0-9]{64}|s_eyJ[\w+/=-]{80,})/g],
  ['settlemint-token', 'sm_', 3, /(?<![\w-])sm_[aps]at_[A-Za-z0-9]{16}(?!\w)/g],
  ['shippo-token', 'shippo_', 4, /(?<![\w-])shippo_(?:live|test)_[a-fA-F0-9]{40}/g],
  ['shopify-token', 'shp', 4, /(?<![\w-])shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32,}/g],
  ['slack-app-token', 'xapp-', 4, /(?<![\w-])xapp-\d-[\w-]{10,}/gi],
  ['slack-token', 'xox', 4, /(?<![\w-])xox[abeoprs](?:\.xox[bp])?-(?=[A-Za-z_-]{0,40}\d)[\w-]{13,}/gi],
  ['slack-webhook', 'hooks.slack.com', 0, /(?<![\w.])hooks\.slack\.com\/(?:services|workflows|triggers)\/[\w/+]{16,}/g],
  ['sourcegraph-token', 'sgp_', 4, /(?<![\w-])sgp_(?:(?:[a-fA-F0-9]{16}|local)_)?[a-fA-F0-9]{40}(?!\w)/g],
  ['square-token', 'sq0', 4, /(?<![\w-])sq0(?:atp|csp)-[\w-]{22,}/g],
  ['square-access-token', 'EAAA', 4, /(?<![\w-])EAAA[\w-]{56,60}(?![\w-])/g],
  ['stripe-key', 'k_', 3, /(?<![\w-])[rs]k_(?:live|test|prod)_[A-Za-z0-9]{10,}/g],
  ['stripe-webhook-secret', 'whsec_', 4, /(?<![\w-])whsec_[A-Za-z0-9+/=]{24,}/g],
  ['supabase-token', 'sbp_', 4, /(?<![\w-])sb(?:p_[a-f0-9]{40}|_secret_[\w-]{20,})/g],
  ['tailscale-key', 'tskey-', 4, /(?<![\w-])tskey-[a-z]+-[\w-]{16,}/g],
  [
    'teams-webhook',
    '/IncomingWebhook/',
    0,
    /(?<![\w-])webhook\.office\.com\/webhookb2\/[\w@-]{36,}\/IncomingWebhook\/[\w/-]{32,}/g,
  ],
  ['telegram-token', ':A', 0, /(?<![\w:-])\d{5,16}:A[\w-]{34}(?![\w-])/g],
  ['terraform-token', '.atlasv1.', 0, /(?<![\w-])[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,70}/g],
  ['twilio-key', 'SK', 2, /(?<![\w-])SK[0-9a-fA-F]{32}(?!\w)/g],
  ['typeform-token', 'tfp_', 4, /(?<![\w-])tfp_[\w.=-]{59}/g],
  ['vault-token', 'hv', 4, /(?<![\w-])hv[bsr]\.[\w-]{24,}/g],
  ['vault-legacy-token', 's.', 2, /(?<![\w./-])s\.(?=[A-Za-z]{0,23}\d)[A-Za-z0-9]{24}(?![\w.(-])/g],
  ['xai-key', 'xai-', 4, /(?<![\w-])xai-[A-Za-z0-9]{40,}/g],
  ['yandex-key', 'AQVN', 4, /(?<![\w-])AQVN[\w-]{35,38}(?![\w-])/g],
];

const STRUCTURES: readonly Row[] = [
  [
    // The heading alone is not a finding, because documents quote it. Encrypted keys have lines such as DEK-Info first.
    // WHY two forms of such a line: it ends with the line or, where spaces replaced the breaks, at the first space. An
    // end at any place would make the time grow with the fourth power of the line's length.
    'private-key',
    'PRIVATE KEY',
    0,
    /-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:\\[rn]|[\s"',]){1,40}(?:[A-Za-z-]{1,20}: (?:[^\r\n\\]{1,80}(?=\\[rn]|[\r\n])|[^\s\\"']{1,80}(?=[ \t"']))(?:\\[rn]|[\s"',]){1,8}){0,4}(?<secret>[A-Za-z0-9+/=]{16}[A-Za-z0-9+/=\s\\"',]*)/g,
  ],
  ['putty-private-key', 'Private-Lines: ', 0, /^Private-Lines: \d{1,4}\r?\n(?<secret>[A-Za-z0-9+/=\r\n]{16,})/gm],
  [
    'url-with-password',
    '://',
    0,
    /(?<![A-Za-z0-9+.-])[a-z][a-z0-9+.-]{1,20}:\/\/[^\s/:@"'`<>{}$]{0,64}:(?<secret>[^\s/@"'`<>]{1,256})@[^\s@"'`<>]/gi,
  ],
  // A whole value, as some programs are given a proxy.
  ['host-with-password', '@', 0, /^[^\s/:@]{1,64}:(?<secret>[^\s/@]{1,256})@[\w.-]{1,253}(?::\d{1,5})?\/?$/g],
  ['dsn-with-password', '@', 0, /(?<![\w.-])[\w.-]{1,64}:(?<secret>[^\s:@"'`<>]{1,256})@(?:tcp|unix)\(/g],
  [
    'connection-string',
    '=',
    0,
    /(?:^(?=[^;"'`\r\n]{1,300};[^;=\r\n]{1,40}=)|(?<![\w-])(?:server|data source|host|user id|uid|user|username|database|initial catalog|driver|address) ?=[^;"'`\r\n]{1,100};(?:[^;="'`\r\n]{1,40}=[^;"'`\r\n]{0,100};){0,6}) ?(?:password|pwd) ?= ?(?<secret>[^;"'`\r\n]{1,256})/gi,
  ],
  [
    'netrc-password',
    'password',
    0,
    /(?<![\w-])(?:machine\s{1,20}[\w.:-]{1,253}|default)(?:\s{1,20}(?:login|account)\s{1,20}\S{1,128}){1,2}\s{1,20}password\s{1,20}(?<secret>\S{1,256})/g,
  ],
];

/** Forms that ordinary text has too. */
const COMMON_FORMS: readonly Row[] = [
  ['hugging-face-token', '_', 3, /(?<![\w-])(?:hf|api_org)_(?<secret>[A-Za-z0-9]{30,})/g],
  ['docker-login', '"auth"', 0, /"auth"\s{0,3}:\s{0,3}"(?<secret>[A-Za-z0-9+/]{8,}={0,2})"/g],
  [
    'authorization-header',
    'uthorization',
    0,
    /(?<!\w)Authorization["']?\s{0,3}[:=]\s{0,3}["']?(?:Basic|Bearer|Token)\s(?<secret>[\w.~+/-]{8,}={0,2})/gi,
  ],
  ['curl-user', 'curl', 0, /(?<=\s)(?:-u|--user)[ =]{1,3}["']?[^\s"':]{1,64}:(?<secret>[^\s"'`]{3,256})/g],
  [
    'xml-password',
    '<',
    0,
    /<(?:[A-Za-z][\w.-]{0,40}:)?(?:password|passphrase|api-?key|client-?secret|secret-?key)>(?<secret>[^<\s]{3,256})</gi,
  ],
  ['xml-setting', '<add', 0, /<add\s{1,8}key="[\w.:-]{0,40}password"\s{1,8}value="(?<secret>[^"\s]{3,256})"/gi],
];

const toPatterns = (rows: readonly Row[], isCommonForm: boolean): SecretPattern[] =>
  rows.map(([name, keyword, shown, pattern]) => ({ name, keyword, shown, pattern, isCommonForm }));

export const SECRET_PATTERNS: readonly SecretPattern[] = [
  ...toPatterns([...TOKENS, ...STRUCTURES], false),
  ...toPatterns(COMMON_FORMS, true),
];

/** Yields matches in the order of the patterns; matches may overlap. */
export function* findSecrets(text: string): Generator<SecretMatch> {
  for (const pattern of SECRET_PATTERNS) {
    if (!text.includes(pattern.keyword)) continue;
    for (const match of text.matchAll(pattern.pattern)) {
      const secret = match.groups?.['secret'] ?? match[0];
      yield { pattern, from: match.index, to: match.index + match[0].length, secret };
    }
  }
}

/** Characters of a variable that are checked, which bounds the cost of a large one. */
const MAX_CHECKED_LENGTH = 16 * 1024;

/** Whether the value of a variable is a secret or holds one, placeholders included: a program rarely needs those. */
export function holdsSecret(value: string): boolean {
  return !findSecrets(value.slice(0, MAX_CHECKED_LENGTH)).next().done;
}

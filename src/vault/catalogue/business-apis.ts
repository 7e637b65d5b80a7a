/** The catalogue's services for payments, messages and planning. SOURCE: their SDKs and API descriptions. */
import { defineService, keyShape, keyVariable, mintingEndpoints, ownForm, sharedForm } from './definition.ts';

export const BUSINESS_SERVICES = [
  defineService({
    name: 'stripe',
    title: 'Stripe',
    targets: [
      { origin: 'https://api.stripe.com', paths: ['/v1/*', '/v2/*'] },
      { origin: 'https://files.stripe.com', paths: ['/v1/*'] },
    ],
    key: keyShape(
      ['sk_live_', 'sk_test_', 'rk_live_', 'rk_test_'],
      [sharedForm('k_', /(?<![\w-])[rs]k_(?:live|test|prod)_[A-Za-z0-9]{10,}/g)],
    ),
    secretEndpoints: mintingEndpoints(
      'POST /v1/ephemeral_keys',
      'POST /v1/account_sessions',
      'POST /v1/customer_sessions',
      'POST /v1/terminal/connection_tokens',
      'POST /v1/webhook_endpoints',
      'POST /v2/core/event_destinations',
      'POST /v2/billing/meter_event_session',
      'GET /v1/apps/secrets/find',
    ),
    notes: ['The Node SDK reads no variables; it has the options `host`, `port` and `protocol`, and no base path.'],
  }),
  defineService({
    name: 'slack',
    title: 'Slack',
    targets: [{ origin: 'https://slack.com', paths: ['/api/*'] }],
    variables: [keyVariable('SLACK_TOKEN', 'example')],
    key: keyShape(
      ['xoxb-', 'xoxp-', 'xapp-'],
      [
        ownForm('xapp-', /(?<![\w-])xapp-\d-[\w-]{10,}/gi),
        ownForm('xox', /(?<![\w-])xox[abeoprs](?:\.xox[bp])?-(?=[A-Za-z_-]{0,40}\d)[\w-]{13,}/gi),
      ],
    ),
    // A method of the Web API accepts GET and POST.
    secretEndpoints: mintingEndpoints(
      'ANY /api/oauth.access',
      'ANY /api/oauth.v2.access',
      'ANY /api/oauth.v2.exchange',
      'ANY /api/oauth.v2.user.access',
      'ANY /api/openid.connect.token',
      'ANY /api/apps.connections.open',
      'ANY /api/apps.manifest.create',
      'ANY /api/rtm.connect',
      'ANY /api/rtm.start',
      'ANY /api/tooling.tokens.rotate',
    ),
    notes: [
      'The SDK reads no base URL from the environment; it has the option `slackApiUrl`, which ends with `/api/`.',
    ],
  }),
  defineService({
    name: 'linear',
    title: 'Linear',
    targets: [{ origin: 'https://api.linear.app', paths: ['/graphql'], methods: ['POST'] }],
    placement: { kind: 'header', name: 'Authorization', template: '{value}' },
    variables: [keyVariable('LINEAR_API_KEY', 'example')],
    key: keyShape(['lin_api_'], [ownForm('lin_api_', /(?<![\w-])lin_api_[A-Za-z0-9]{32,}/g)]),
    notes: [
      'For an API key; an OAuth token needs `bearer`.',
      'All requests have one path, so mutations that create secrets are not denied: give the key no admin rights.',
    ],
  }),
  defineService({
    name: 'notion',
    title: 'Notion',
    targets: [{ origin: 'https://api.notion.com', paths: ['/v1/*'] }],
    variables: [keyVariable('NOTION_TOKEN', 'example')],
    key: keyShape(['ntn_'], [ownForm('ntn_', /(?<![\w-])ntn_[A-Za-z0-9]{40,}/g)]),
    secretEndpoints: mintingEndpoints('POST /v1/oauth/token'),
    notes: ['The client sends the header `Notion-Version`. The SDK has the option `baseUrl`, without `/v1`.'],
  }),
  defineService({
    name: 'jira',
    title: 'Jira',
    targets: [{ origin: 'https://*.atlassian.net', paths: ['/rest/*'] }],
    needsHost: true,
    placement: { kind: 'basic' },
    key: keyShape(['ATATT3'], [ownForm('ATATT3', /(?<![\w-])ATATT3[\w=-]{100,}/g)]),
    secretEndpoints: mintingEndpoints('POST /rest/auth/*/session'),
    notes: ['The value is `EMAIL:API_TOKEN`.'],
  }),
  defineService({
    name: 'discord',
    title: 'Discord',
    targets: [{ origin: 'https://discord.com', paths: ['/api/*'] }],
    placement: { kind: 'header', name: 'Authorization', template: 'Bot {value}' },
    variables: [keyVariable('DISCORD_TOKEN')],
    key: keyShape([], [sharedForm('.', /(?<![\w.-])[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,38}(?![\w-])/g)]),
    // A webhook contains its token, and the path may name a version of the API.
    secretEndpoints: mintingEndpoints(
      ...['/api', '/api/*'].flatMap((api) => [
        `GET,POST ${api}/channels/*/webhooks`,
        `GET ${api}/guilds/*/webhooks`,
        `GET,PATCH ${api}/webhooks/*`,
        `POST ${api}/partner-sdk/token`,
        `POST ${api}/partner-sdk/token/bot`,
        `POST ${api}/oauth2/token`,
      ]),
    ),
    notes: ['For a bot token and HTTP requests; the gateway receives the token in a message, which is not supported.'],
  }),
  defineService({
    name: 'twilio',
    title: 'Twilio',
    targets: [
      ...['api', 'accounts', 'content', 'conversations', 'lookups', 'messaging', 'monitor', 'numbers', 'pricing'],
      ...['studio', 'sync', 'taskrouter', 'verify', 'video', 'voice'],
    ].map((product) => ({ origin: `https://${product}.twilio.com` })),
    placement: { kind: 'basic' },
    variables: [keyVariable('TWILIO_AUTH_TOKEN')],
    key: keyShape(['AC', 'SK'], [ownForm('SK', /(?<![\w-])SK[0-9a-fA-F]{32}(?!\w)/g)]),
    secretEndpoints: mintingEndpoints(
      'GET,POST /2010-04-01/Accounts',
      'GET,POST /2010-04-01/Accounts/*',
      'POST /2010-04-01/Accounts/*/Keys',
      'POST /2010-04-01/Accounts/*/SigningKeys',
      'POST /2010-04-01/Accounts/*/Tokens',
      'POST /v1/AuthTokens/Secondary',
      'POST /v1/AuthTokens/Promote',
      'POST /v1/Credentials/PublicKeys',
      'POST /v2/Services/*/AccessTokens',
    ),
    notes: [
      'The value is `ACCOUNT_SID:AUTH_TOKEN` or `API_KEY_SID:SECRET`.',
      'Set `TWILIO_ACCOUNT_SID` to your own, because the SDK uses it in paths. It reads no base URL.',
    ],
  }),
  defineService({
    name: 'sendgrid',
    title: 'SendGrid',
    targets: [
      { origin: 'https://api.sendgrid.com', paths: ['/v3/*'] },
      { origin: 'https://api.eu.sendgrid.com', paths: ['/v3/*'] },
    ],
    variables: [keyVariable('SENDGRID_API_KEY', 'example')],
    key: keyShape(['SG.'], [ownForm('SG.', /(?<![\w-])SG\.[\w=-]{16,32}\.[\w=-]{32,}/g)], /^SG\./),
    secretEndpoints: mintingEndpoints('POST /v3/api_keys'),
    notes: ['The Node SDK prints a warning for a key that does not begin with `SG.`.'],
  }),
];

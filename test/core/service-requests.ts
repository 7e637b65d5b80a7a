/** Requests of each service of the catalogue, as its clients send them. */

/** Requests of each service that its targets must allow and that mint nothing. */
export const ORDINARY: Readonly<Record<string, readonly string[]>> = {
  anthropic: ['POST https://api.anthropic.com/v1/messages', 'GET https://api.anthropic.com/v1/models'],
  cloudflare: [
    'GET https://api.cloudflare.com/client/v4/user/tokens/verify',
    'POST https://api.cloudflare.com/client/v4/zones/z1/purge_cache',
  ],
  datadog: ['POST https://api.datadoghq.eu/api/v2/series', 'GET https://api.datadoghq.com/api/v1/monitor'],
  discord: ['POST https://discord.com/api/v10/channels/1/messages', 'GET https://discord.com/api/users/@me'],
  gemini: [
    'POST https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent',
    'GET https://generativelanguage.googleapis.com/v1beta/models',
  ],
  github: [
    'GET https://api.github.com/repos/o/r/issues?per_page=100',
    'GET https://api.github.com/user/keys',
    'POST https://uploads.github.com/repos/o/r/releases/1/assets?name=a.zip',
  ],
  gitlab: ['GET https://gitlab.com/api/v4/projects/group%2Fproject/issues', 'GET https://gitlab.com/api/v4/user'],
  google: [
    'GET https://storage.googleapis.com/storage/v1/b?project=p',
    'GET https://www.googleapis.com/drive/v3/files',
    'GET https://secretmanager.googleapis.com/v1/projects/p/secrets/s/versions',
  ],
  'hugging-face': [
    'GET https://huggingface.co/api/models/gpt2',
    'POST https://router.huggingface.co/v1/chat/completions',
  ],
  jira: ['GET https://example.atlassian.net/rest/api/3/issue/A-1', 'POST https://a.atlassian.net/rest/api/3/search'],
  linear: ['POST https://api.linear.app/graphql'],
  notion: ['POST https://api.notion.com/v1/pages', 'GET https://api.notion.com/v1/users/me'],
  npm: ['PUT https://registry.npmjs.org/@scope%2fname', 'GET https://registry.npmjs.org/-/npm/v1/tokens'],
  openai: ['POST https://api.openai.com/v1/responses', 'GET https://api.openai.com/v1/organization/admin_api_keys'],
  openrouter: ['POST https://openrouter.ai/api/v1/chat/completions', 'GET https://openrouter.ai/api/v1/key'],
  pypi: ['POST https://upload.pypi.org/legacy/'],
  replicate: ['POST https://api.replicate.com/v1/models/o/m/predictions', 'GET https://api.replicate.com/v1/account'],
  sendgrid: ['POST https://api.sendgrid.com/v3/mail/send', 'GET https://api.eu.sendgrid.com/v3/api_keys'],
  sentry: ['GET https://sentry.io/api/0/organizations/o/issues/', 'GET https://us.sentry.io/api/0/projects/o/p/keys/'],
  slack: ['POST https://slack.com/api/chat.postMessage', 'GET https://slack.com/api/conversations.list?limit=10'],
  stripe: ['POST https://api.stripe.com/v1/payment_intents', 'POST https://files.stripe.com/v1/files'],
  supabase: ['GET https://abcdefghij.supabase.co/rest/v1/articles?select=id', 'GET https://a.supabase.co/auth/v1/user'],
  twilio: [
    'POST https://api.twilio.com/2010-04-01/Accounts/AC1/Messages.json',
    'POST https://verify.twilio.com/v2/Services/VA1/Verifications',
  ],
  vercel: ['GET https://api.vercel.com/v9/projects', 'POST https://api.vercel.com/v13/deployments'],
};

/** Requests whose response is a secret, written as clients send them. */
export const MINTING: Readonly<Record<string, readonly string[]>> = {
  anthropic: ['POST https://api.anthropic.com/v1/tunnels/t1/reveal_token?beta=true'],
  cloudflare: [
    'POST https://api.cloudflare.com/client/v4/user/tokens',
    'POST https://api.cloudflare.com/client/v4/accounts/a/access/service_tokens',
    'POST https://api.cloudflare.com/client/v4/zones/z/access/service_tokens',
    'GET https://api.cloudflare.com/client/v4/accounts/a/cfd_tunnel/t/token',
  ],
  datadog: ['POST https://api.datadoghq.com/api/v2/service_accounts/s/application_keys'],
  discord: ['GET https://discord.com/api/v10/guilds/1/webhooks', 'POST https://discord.com/api/channels/1/webhooks'],
  gemini: ['POST https://generativelanguage.googleapis.com/v1alpha/auth_tokens'],
  github: [
    'POST https://api.github.com/app/installations/42/access_tokens',
    'POST https://api.github.com/repos/o/r/actions/runners/registration-token',
  ],
  gitlab: [
    'POST https://gitlab.com/api/v4/projects/group%2Fproject/access_tokens',
    'POST https://gitlab.com/api/v4/personal_access_tokens/self/rotate',
  ],
  google: [
    'POST https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/a@b.example:generateAccessToken',
    'POST https://iam.googleapis.com/v1/projects/p/serviceAccounts/a@b.example/keys',
    'GET https://secretmanager.googleapis.com/v1/projects/p/secrets/s/versions/latest:access',
  ],
  'hugging-face': [
    'GET https://huggingface.co/api/models/o/m/xet-write-token/refs/pr/1',
    'GET https://huggingface.co/api/buckets/o/b/xet-read-token',
  ],
  jira: ['POST https://example.atlassian.net/rest/auth/1/session'],
  notion: ['POST https://api.notion.com/v1/oauth/token'],
  npm: [
    'PUT https://registry.npmjs.org/-/user/org.couchdb.user:ann',
    'POST https://registry.npmjs.org/-/npm/v1/oidc/token/exchange/package/@s%2fn',
  ],
  openai: [
    'POST https://api.openai.com/v1/organization/admin_api_keys',
    'POST https://api.openai.com/v1/realtime/client_secrets',
    'POST https://api.openai.com/v1/organization/projects/p1/service_accounts',
  ],
  openrouter: ['POST https://openrouter.ai/api/v1/keys'],
  replicate: ['GET https://api.replicate.com/v1/webhooks/default/secret'],
  sendgrid: ['POST https://api.sendgrid.com/v3/api_keys'],
  sentry: ['POST https://sentry.io/api/0/organizations/o/org-auth-tokens/'],
  slack: ['GET https://slack.com/api/oauth.v2.access', 'POST https://slack.com/api/apps.connections.open'],
  stripe: ['POST https://api.stripe.com/v1/ephemeral_keys', 'POST https://api.stripe.com/v1/webhook_endpoints'],
  supabase: ['POST https://a.supabase.co/auth/v1/token?grant_type=password'],
  twilio: [
    'POST https://api.twilio.com/2010-04-01/Accounts/AC1/Keys.json',
    'GET https://api.twilio.com/2010-04-01/Accounts/AC1.json',
  ],
  vercel: ['POST https://api.vercel.com/v3/user/tokens', 'GET https://api.vercel.com/v10/projects/p/env'],
};

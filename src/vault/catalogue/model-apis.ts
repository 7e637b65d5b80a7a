/** The catalogue's services that run models. SOURCE: their SDKs' sources and API descriptions; see docs/services.md. */
import {
  baseUrl,
  defineService,
  fixedVariable,
  keyShape,
  keyVariable,
  mintingEndpoints,
  ownForm,
  sharedForm,
} from './definition.ts';

export const MODEL_SERVICES = [
  defineService({
    name: 'openai',
    title: 'OpenAI',
    targets: [{ origin: 'https://api.openai.com', paths: ['/v1/*'] }],
    variables: [baseUrl('OPENAI_BASE_URL', '/v1'), keyVariable('OPENAI_API_KEY')],
    key: keyShape(
      ['sk-'],
      [
        ownForm('sk-', /(?<![\w-])sk-(?:proj|svcacct|admin|None)-[\w-]{20,}/g),
        sharedForm('sk-', /(?<![\w-])sk-[A-Za-z0-9]{32,}/g),
      ],
    ),
    secretEndpoints: mintingEndpoints(
      'POST /v1/organization/admin_api_keys',
      'POST /v1/organization/projects/*/service_accounts',
      'POST /v1/organization/projects/*/service_accounts/*/api_keys',
      'POST /v1/realtime/client_secrets',
      'POST /v1/realtime/translations/client_secrets',
      'POST /v1/realtime/sessions',
      'POST /v1/realtime/transcription_sessions',
      'POST /v1/chatkit/sessions',
    ),
  }),
  defineService({
    name: 'anthropic',
    title: 'Anthropic',
    targets: [{ origin: 'https://api.anthropic.com', paths: ['/v1/*'] }],
    placement: { kind: 'header', name: 'x-api-key' },
    variables: [baseUrl('ANTHROPIC_BASE_URL'), keyVariable('ANTHROPIC_API_KEY')],
    key: keyShape(['sk-ant-'], [ownForm('sk-ant-', /(?<![\w-])sk-ant-[\w-]{24,}/g)]),
    secretEndpoints: mintingEndpoints(
      'POST /v1/oauth/token',
      'POST /v1/tunnels/*/rotate_token',
      'POST /v1/tunnels/*/reveal_token',
    ),
    notes: ['The client sends the header `anthropic-version`; the SDKs set it.'],
  }),
  defineService({
    name: 'openrouter',
    title: 'OpenRouter',
    targets: [{ origin: 'https://openrouter.ai', paths: ['/api/v1/*'] }],
    variables: [baseUrl('OPENROUTER_BASE_URL', '/api/v1'), keyVariable('OPENROUTER_API_KEY')],
    key: keyShape(['sk-or-'], [ownForm('sk-or-', /(?<![\w-])sk-or-v1-[0-9a-f]{40,}/g)]),
    secretEndpoints: mintingEndpoints('POST /api/v1/keys', 'POST /api/v1/auth/keys', 'POST /api/v1/auth/keys/code'),
  }),
  defineService({
    name: 'gemini',
    title: 'Gemini',
    targets: [{ origin: 'https://generativelanguage.googleapis.com' }],
    placement: { kind: 'header', name: 'x-goog-api-key' },
    // The SDK prefers GOOGLE_API_KEY, so a real key in it would be used instead of the placeholder.
    variables: [baseUrl('GOOGLE_GEMINI_BASE_URL'), keyVariable('GEMINI_API_KEY'), keyVariable('GOOGLE_API_KEY')],
    key: keyShape(['AIza'], [sharedForm('AIza', /(?<![\w-])AIza[\w-]{35}(?![\w-])/g)]),
    secretEndpoints: mintingEndpoints('POST /*/auth_tokens'),
  }),
  defineService({
    name: 'hugging-face',
    title: 'Hugging Face',
    targets: [{ origin: 'https://huggingface.co' }, { origin: 'https://router.huggingface.co' }],
    variables: [
      baseUrl('HF_ENDPOINT'),
      keyVariable('HF_TOKEN'),
      // Xet transfers need a storage token, which is another secret.
      fixedVariable('HF_HUB_DISABLE_XET', '1'),
    ],
    key: keyShape(['hf_'], [ownForm('_', /(?<![\w-])(?:hf|api_org)_(?<secret>[A-Za-z0-9]{30,})/g)]),
    secretEndpoints: mintingEndpoints(
      'POST /oauth/token',
      'POST /oauth/device',
      // A repository has one or two segments.
      ...['/api/*/*', '/api/*/*/*'].flatMap((repository) => [
        `GET ${repository}/xet-*-token`,
        `GET ${repository}/xet-*-token/**`,
      ]),
    ),
    notes: ['`HF_ENDPOINT` is the hub; models run at the second target, `router.huggingface.co`.'],
  }),
  defineService({
    name: 'replicate',
    title: 'Replicate',
    targets: [{ origin: 'https://api.replicate.com', paths: ['/v1/*'] }],
    variables: [baseUrl('REPLICATE_BASE_URL'), keyVariable('REPLICATE_API_TOKEN')],
    key: keyShape(['r8_'], [ownForm('r8_', /(?<![\w-])r8_[A-Za-z0-9]{32,}/g)]),
    secretEndpoints: mintingEndpoints('GET /v1/webhooks/default/secret'),
    notes: ['Only the Python SDK reads `REPLICATE_BASE_URL`; the JavaScript SDK has the option `baseUrl`.'],
  }),
];

// Signatures of webhooks. SOURCE: Standard Webhooks 1.0.0, whose libraries all verify this example.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseWebhookSecret, webhookSignature } from '../../src/crypto/signatures.ts';

test('the example of the specification has its signature', () => {
  const key = parseWebhookSecret('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw') ?? assert.fail();
  const signature = webhookSignature(key, 'msg_p5jXN8AQM9LWM0D4loKWxJek', 1614265330, '{"test": 2432232314}');
  assert.equal(signature, 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=');
});

test('a secret has 24 to 64 bytes of strict base64, with or without its prefix', () => {
  const secretOf = (bytes: number): string => Buffer.alloc(bytes, 1).toString('base64');
  for (const bytes of [24, 32, 64]) {
    assert.equal(parseWebhookSecret(`whsec_${secretOf(bytes)}`)?.length, bytes);
    assert.equal(parseWebhookSecret(secretOf(bytes))?.length, bytes);
  }
  for (const text of ['', 'whsec_', secretOf(23), secretOf(65), `${secretOf(32)}=`, 'whsec_not base64 at all, no'])
    assert.equal(parseWebhookSecret(text), null);
});

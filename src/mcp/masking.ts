/** Interim: see src/delivery/masking.ts. */
import type { Secret } from '../core/secret.ts';

export async function* mask(chunks: AsyncIterable<Uint8Array>, secrets: readonly Secret[]): AsyncGenerator<Uint8Array> {
  const all: Uint8Array[] = [];
  for await (const chunk of chunks) all.push(chunk);
  let text = Buffer.concat(all).toString('utf8');
  for (const secret of secrets) {
    const value = secret.reveal();
    for (const form of [
      value,
      Buffer.from(value).toString('base64'),
      encodeURIComponent(value),
      Buffer.from(value).toString('hex'),
    ]) {
      text = text.replaceAll(form, '[masked]');
    }
  }
  yield Buffer.from(text);
}

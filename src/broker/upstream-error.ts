/** A failed request to an upstream, and the failure class that the client sees. */
import { errnoSuffix } from '../platform/errors.ts';
import type { FailureClass } from './protocol.ts';

export class UpstreamError extends Error {
  readonly failure: FailureClass;

  constructor(failure: FailureClass) {
    super(`the request to the upstream failed: ${failure}`);
    this.name = 'UpstreamError';
    this.failure = failure;
  }
}

/** The phase that a request reached. It determines the meaning of an error. */
export type Phase = 'connect' | 'tls' | 'exchange';

/** OpenSSL's and Node's codes of rejected certificates, which can arrive after the handshake. */
const CERTIFICATE = /CERT|^ERR_(?:TLS|SSL)|^UNABLE_TO_|SIGNED|^HOSTNAME_MISMATCH/;
const CODINGS = /^(?:Z_|ERR__?ERROR|ERR_BROTLI|ERR_ZSTD|ZSTD_|ERR_BUFFER|ERR_PADDING)/;

export function classify(error: unknown, phase: Phase): FailureClass {
  if (error instanceof UpstreamError) return error.failure;
  const code = /\((\w+)\)/.exec(errnoSuffix(error))?.[1] ?? '';
  if (/^(?:ENOTFOUND|EAI_|ENODATA)/.test(code)) return 'dns';
  if (CODINGS.test(code)) return 'coding';
  if (CERTIFICATE.test(code)) return 'tls';
  if (phase === 'connect') return code === 'ETIMEDOUT' ? 'timeout' : 'connect';
  return phase === 'tls' ? 'tls' : 'protocol';
}

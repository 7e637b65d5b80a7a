/** Explains certificate errors by Node's TLS error codes. SOURCE: Node, tls, "X509 certificate error codes" */

const OTHER_NAME = 'was issued for another name';
const UNKNOWN_AUTHORITY = 'is not from a certificate authority that is trusted here';

const FAULTS: ReadonlyMap<string, string> = new Map([
  ['ERR_TLS_CERT_ALTNAME_INVALID', OTHER_NAME],
  ['HOSTNAME_MISMATCH', OTHER_NAME],
  ['CERT_HAS_EXPIRED', 'has expired'],
  ['CERT_NOT_YET_VALID', 'is not valid yet'],
  ['CERT_REVOKED', 'was revoked'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', UNKNOWN_AUTHORITY],
  ['SELF_SIGNED_CERT_IN_CHAIN', UNKNOWN_AUTHORITY],
  ['UNABLE_TO_GET_ISSUER_CERT', UNKNOWN_AUTHORITY],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', UNKNOWN_AUTHORITY],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', UNKNOWN_AUTHORITY],
  ['CERT_UNTRUSTED', UNKNOWN_AUTHORITY],
  ...['CERT_SIGNATURE_FAILURE', 'CERT_REJECTED', 'CERT_CHAIN_TOO_LONG', 'INVALID_CA', 'INVALID_PURPOSE'].map(
    (code) => [code, 'cannot be verified'] as const,
  ),
]);

/** Returns null for a code that does not concern a certificate. */
export function certificateFault(code: string): string | null {
  return FAULTS.get(code) ?? null;
}

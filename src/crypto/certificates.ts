/** Certificates in PEM. Node ignores authorities that it cannot parse, so a wrong file would be found much later. */
import { X509Certificate } from 'node:crypto';

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/** Whether the text has one or more certificates, and each of them can be parsed. */
export function hasCertificates(pem: string): boolean {
  const blocks = pem.match(CERTIFICATE) ?? [];
  try {
    return blocks.map((block) => new X509Certificate(block)).length > 0;
  } catch {
    return false;
  }
}

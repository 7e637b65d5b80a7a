/** A self-signed certificate for `localhost`, created with openssl. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { type Scope, temporaryDirectory } from './directory.ts';

/** The files, as flags of the service name them. */
export function makeCertificate(
  scope: Scope,
  names = 'DNS:localhost,IP:127.0.0.1',
): { certFile: string; keyFile: string; flags: string[] } {
  const directory = temporaryDirectory(scope);
  const [certFile, keyFile] = [join(directory, 'cert.pem'), join(directory, 'key.pem')];
  const request = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
  const subject = ['-subj', '/CN=localhost', '-addext', `subjectAltName=${names}`];
  execFileSync('openssl', [...request, ...subject, '-keyout', keyFile, '-out', certFile], { stdio: 'ignore' });
  return { certFile, keyFile, flags: ['--tls-cert', certFile, '--tls-key', keyFile] };
}

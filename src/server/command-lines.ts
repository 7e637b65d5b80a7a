/**
 * The programs as messages name them: npm scripts in a checkout, where this file is TypeScript; commands in the
 * package.
 */
const isCheckout = import.meta.filename.endsWith('.ts');
export const CALLED_AS = {
  server: isCheckout ? 'npm start --' : 'leasehold server',
  migrate: isCheckout ? 'npm run migrate --' : 'leasehold migrate',
  restore: isCheckout ? 'npm run restore --' : 'leasehold restore',
  schema: isCheckout ? 'npm run schema --' : 'leasehold schema',
  auditKey: isCheckout ? 'npm run --silent audit-key --' : 'leasehold audit-key',
} as const;

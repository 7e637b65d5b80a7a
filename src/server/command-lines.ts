/** The server as messages name it: an npm script in a checkout, where this file is TypeScript, and else the CLI. */
const isCheckout = import.meta.filename.endsWith('.ts');
export const CALLED_AS = {
  server: isCheckout ? 'npm start --' : 'leasehold server',
} as const;

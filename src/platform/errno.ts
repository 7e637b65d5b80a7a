/** The error's system code for the end of a message, such as ` (ENOSPC)`; empty for an error without a code. */
export function errnoSuffix(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? ` (${error.code})` : '';
}

/** What the operating system or the runtime calls an error, such as ` (ENOSPC)`, for the end of a message; empty where it has no name. */
export function errnoSuffix(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? ` (${error.code})` : '';
}

/**
 * How a store fails. `unavailable`: nothing was written, and a retry may succeed. `unknown`: a commit may have
 * happened; the head shows whether it did. `fatal`: the storage failed during a write or a sync, its contents may not
 * be durable, and the process must stop (never retry a failed sync).
 */
export type FailureKind = 'unavailable' | 'unknown' | 'fatal';

export class StoreError extends Error {
  readonly kind: FailureKind;

  constructor(kind: FailureKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'StoreError';
    this.kind = kind;
  }
}

export function storeErrorOf(error: unknown): StoreError | null {
  return error instanceof StoreError ? error : null;
}

/** What a failing store is to those who must not know the store. */
import { StoreError } from '../store/store.ts';

/** Whether the storage is why; what it says is for the operator. */
export function isStoreFailure(error: unknown): boolean {
  return error instanceof StoreError;
}

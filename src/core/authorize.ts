/** A read that the permission table alone decides. */
import { type Context, type Operation, operation, succeeded } from './operation.ts';
import type { Permission } from './permissions.ts';

/** Records a denial and nothing else; the caller reads the store afterwards. */
export function authorize(context: Context, permission: Permission, resource = '*'): Operation<null> {
  return operation({ context, permission, resource }, () => succeeded(null, null));
}

/** Checks a route's `access` against the rights of the caller's key and roles, and against the state of its tenant. */
import { canDo, type Permission, type Rights, toPermissionError } from '../../core/foundation/access/role.ts';
import { FarthingError } from '../../core/foundation/error.ts';

/** Throws `permission_denied` unless both the key and one of the roles allow the action. A suspended tenant is read-only. */
export function checkAccess(permission: Permission, rights: Rights & { suspended: boolean }): void {
  if (!canDo(rights, permission)) throw toPermissionError(permission);
  if (!permission.endsWith(':read') && rights.suspended)
    throw new FarthingError('permission_denied', 'this tenant is suspended: it can be read and not written');
}

/** What a route's `access` asks of the caller's key and roles, and of its tenant. */
import { canDo, type Permission, type Rights, toPermissionError } from '../../core/access/role.ts';
import { FarthingError } from '../../core/error.ts';

/** Throws `permission_denied` unless the key and one of the roles allow what the route does. */
export function checkAccess(permission: Permission, rights: Rights & { suspended: boolean }): void {
  if (!canDo(rights, permission)) throw toPermissionError(permission);
  if (!permission.endsWith(':read') && rights.suspended)
    throw new FarthingError('permission_denied', 'this tenant is suspended: it can be read and not written');
}

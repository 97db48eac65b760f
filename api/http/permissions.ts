/** Checks a route's `access` against the rights of the caller's key and roles, and against the state of its tenant. */
import { canDo, type Permission, type Rights, toPermissionError } from '../../core/foundation/access/role.ts';
import { FarthingError } from '../../core/foundation/error.ts';

type TenantRights = Rights & { readonly suspended: boolean };

/** Whether both the key and one of the roles allow the action. A suspended tenant is read-only. */
export function hasAccess(permission: Permission, rights: TenantRights): boolean {
  return canDo(rights, permission) && !isSuspended(permission, rights);
}

/** Throws `permission_denied` without access. */
export function checkAccess(permission: Permission, rights: TenantRights): void {
  if (!canDo(rights, permission)) throw toPermissionError(permission);
  if (isSuspended(permission, rights))
    throw new FarthingError('permission_denied', 'this tenant is suspended: it can be read and not written');
}

function isSuspended(permission: Permission, { suspended }: TenantRights): boolean {
  return suspended && !permission.endsWith(':read');
}

/** What a route's `access` asks of the caller's roles and of its tenant. */
import { type Action, mayDo } from '../core/catalogue/role.ts';
import { FarthingError } from '../core/error.ts';
import type { Access } from './route.ts';

/** Throws `permission_denied` unless one of the roles allows what the route does. */
export function checkAccess(access: Access, caller: { roles: readonly string[]; suspended: boolean }): void {
  const [entity, action] = access.split(':') as [string, Action | undefined];
  if (action === undefined) return;
  if (!mayDo(caller.roles, entity, action))
    throw new FarthingError('permission_denied', `this needs the permission ${access}`, {
      details: { permission: access },
    });
  if (action !== 'read' && caller.suspended)
    throw new FarthingError('permission_denied', 'this tenant is suspended: it can be read and not written');
}

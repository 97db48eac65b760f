/**
 * Roles and what they allow (api/24). A permission is an entity and an action; a role is a map from entities to actions.
 */
import { FarthingError } from '../core/error.ts';
import type { Access } from './route.ts';

export const ENTITIES = [
  'user', 'environment', 'event', 'meter', 'price', 'customer', 'plan', 'addon', 'group', 'alert_settings',
  'subscription', 'wallet', 'tenant', 'invoice', 'feature', 'entitlement', 'creditgrant', 'payment', 'integration',
  'task', 'tax', 'secret', 'connection', 'costsheet', 'creditnote', 'coupon', 'ai', 'portal', 'webhook', 'cron',
  'setting', 'oauth', 'checkoutsession', 'workflow',
] as const; // biome-ignore format: one list, read as a text

export type Action = 'read' | 'write';
export type Role = {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly permissions: Readonly<Record<string, readonly Action[]>>;
  /** Who may hold it. */
  readonly user_types: readonly ('user' | 'service_account')[];
};

const everywhere = (...actions: Action[]) => Object.fromEntries(ENTITIES.map((entity) => [entity, actions]));

export const ROLES: readonly Role[] = [
  {
    id: 'super_admin',
    name: 'Super admin',
    description: 'Everything, including users and their keys.',
    permissions: everywhere('read', 'write'),
    user_types: ['user', 'service_account'],
  },
  {
    id: 'all_writer',
    name: 'Writer',
    description: 'Reads and writes every record.',
    permissions: everywhere('read', 'write'),
    user_types: ['user'],
  },
  {
    id: 'all_reader',
    name: 'Reader',
    description: 'Reads every record and writes none.',
    permissions: everywhere('read'),
    user_types: ['user'],
  },
  {
    id: 'event_ingestor',
    name: 'Event ingestor',
    description: 'Sends events.',
    permissions: { event: ['write'] },
    user_types: ['service_account'],
  },
  {
    id: 'event_reader',
    name: 'Event reader',
    description: 'Reads events.',
    permissions: { event: ['read'] },
    user_types: ['service_account'],
  },
];

export function roleOf(id: string): Role | undefined {
  return ROLES.find((role) => role.id === id);
}

export function mayDo(roles: readonly string[], entity: string, action: Action): boolean {
  return roles.some((id) => roleOf(id)?.permissions[entity]?.includes(action));
}

/** Throws `permission_denied` unless one of the roles allows what the route does. */
export function checkAccess(access: Access, principal: { roles: readonly string[] }, tenant: { suspended: boolean }): void {
  const [entity, action] = access.split(':') as [string, Action | undefined];
  if (action === undefined) return;
  if (!mayDo(principal.roles, entity, action))
    throw new FarthingError('permission_denied', `this needs the permission ${access}`, { details: { permission: access } });
  if (action === 'write' && tenant.suspended)
    throw new FarthingError('permission_denied', 'this tenant is suspended: it can be read and not written');
}

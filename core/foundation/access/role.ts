/**
 * Roles and their permissions (docs/permissions.md). A permission is an entity and an action; a role is a map from entities to actions.
 * Some roles are for users, some for service accounts.
 */
import { FarthingError, invalid } from '../error.ts';

// biome-ignore format: one list, read as a text
export const ENTITIES = [
  'user', 'environment', 'event', 'meter', 'price', 'customer', 'plan', 'addon', 'group', 'alert_settings',
  'subscription', 'wallet', 'tenant', 'invoice', 'feature', 'entitlement', 'creditgrant', 'payment', 'integration',
  'task', 'tax', 'secret', 'connection', 'costsheet', 'creditnote', 'coupon', 'ai', 'portal', 'webhook', 'cron',
  'setting', 'oauth', 'checkoutsession', 'workflow', 'audit_log', 'test_clock', 'reservation',
] as const;

export type PermissionEntity = (typeof ENTITIES)[number];
/** `correct` exists for events only: it voids or replaces accepted events. */
export type Action = 'read' | 'write' | 'correct';
/** Permission that a route requires. `self` is the caller's own profile, which no role names. */
export type Permission = `${PermissionEntity | 'self'}:${'read' | 'write'}` | 'event:correct';
export type UserType = 'user' | 'service_account';
export type ApiKeyType = 'private_key' | 'publishable_key';
/** Rights of a principal with the key that it uses. */
export type Rights = {
  readonly roles: readonly string[];
  readonly user_type: UserType;
  readonly key_type: ApiKeyType;
};

export type Role = {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly permissions: Readonly<Record<string, readonly Action[]>>;
  readonly user_types: readonly UserType[];
};

const grantEverywhere = (...actions: Action[]) => Object.fromEntries(ENTITIES.map((entity) => [entity, actions]));

export const ROLES: readonly Role[] = [
  {
    id: 'super_admin',
    name: 'Super admin',
    description: 'Everything, including users and their keys.',
    permissions: { ...grantEverywhere('read', 'write'), event: ['read', 'write', 'correct'] },
    user_types: ['user', 'service_account'],
  },
  {
    id: 'all_writer',
    name: 'Writer',
    description: 'Reads and writes every record.',
    permissions: { ...grantEverywhere('read', 'write'), event: ['read', 'write', 'correct'] },
    user_types: ['user'],
  },
  {
    id: 'all_reader',
    name: 'Reader',
    description: 'Reads every record and writes none.',
    permissions: grantEverywhere('read'),
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
    id: 'reserver',
    name: 'Reserver',
    description: 'Asks what customers may use, holds it for them, and commits or releases what was held.',
    permissions: { reservation: ['read', 'write'] },
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

export function findRole(id: string): Role | undefined {
  return ROLES.find((role) => role.id === id);
}

export function canDo({ roles, user_type, key_type }: Rights, permission: Permission): boolean {
  // A publishable key is in a page or an app, where anyone can read it.
  if (key_type === 'publishable_key' && permission !== 'event:write') return false;
  const [entity, action] = permission.split(':') as [PermissionEntity | 'self', Action];
  // Every user has a profile, whatever the roles. A service account needs a role with a permission for users.
  if (entity === 'self') return user_type === 'user' || hasPermission(roles, 'user', action);
  return hasPermission(roles, entity, action);
}

function hasPermission(roles: readonly string[], entity: PermissionEntity, action: Action): boolean {
  return roles.some((id) => findRole(id)?.permissions[entity]?.includes(action));
}

export function canWrite({ roles }: { roles: readonly string[] }, entity: PermissionEntity): boolean {
  return hasPermission(roles, entity, 'write');
}

export function canRead({ roles }: { roles: readonly string[] }, entity: PermissionEntity): boolean {
  return hasPermission(roles, entity, 'read');
}

/** Lists the actions that the roles allow, by entity. An entity without any action is left out. */
export function listPermissions({ roles }: { roles: readonly string[] }): Record<string, Action[]> {
  const actions = ['read', 'write', 'correct'] as const;
  const allowed = ENTITIES.map((entity) => {
    return [entity, actions.filter((action) => hasPermission(roles, entity, action))] as const;
  });
  return Object.fromEntries(allowed.filter(([, some]) => some.length > 0));
}

/** Records that a response shows in addition to its subject need a permission of their own. */
export function requireRead({ roles }: { roles: readonly string[] }, entity: PermissionEntity, what: string): void {
  if (!canRead({ roles }, entity)) throw toPermissionError(`${entity}:read`, what);
}

/** Records that an operation changes in addition to its subject need a permission of their own. */
export function requireWrite({ roles }: { roles: readonly string[] }, entity: PermissionEntity, what: string): void {
  if (!canWrite({ roles }, entity)) throw toPermissionError(`${entity}:write`, what);
}

export function toPermissionError(permission: Permission, what = 'this'): FarthingError {
  return new FarthingError('permission_denied', `${what} needs the permission ${permission}`, {
    details: { permission },
  });
}

export function isSuperAdmin({ roles }: { roles: readonly string[] }): boolean {
  return roles.includes('super_admin');
}

export function requireSuperAdmin(principal: { roles: readonly string[] }, deed: string): void {
  if (!isSuperAdmin(principal)) throw new FarthingError('permission_denied', `only a super_admin may ${deed}`);
}

/** Checks that the roles exist and are available to this type of user. */
export function checkRoles(roles: readonly string[], type: UserType): void {
  for (const id of roles) {
    const role = findRole(id);
    const allowed = ROLES.filter((known) => known.user_types.includes(type)).map((known) => known.id);
    if (!role?.user_types.includes(type)) throw invalid('roles', `a ${type} cannot hold ${id}`, { allowed });
  }
}

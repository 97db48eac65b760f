/**
 * Roles and what they allow (api/24, "Permission entity names"): a permission is an entity and an action; a role is a map
 * from entities to actions. "Users may hold super_admin, all_reader, all_writer; service accounts super_admin,
 * event_ingestor, event_reader."
 */
import { FarthingError, invalid } from '../error.ts';

// biome-ignore format: one list, read as a text
export const ENTITIES = [
  'user', 'environment', 'event', 'meter', 'price', 'customer', 'plan', 'addon', 'group', 'alert_settings',
  'subscription', 'wallet', 'tenant', 'invoice', 'feature', 'entitlement', 'creditgrant', 'payment', 'integration',
  'task', 'tax', 'secret', 'connection', 'costsheet', 'creditnote', 'coupon', 'ai', 'portal', 'webhook', 'cron',
  'setting', 'oauth', 'checkoutsession', 'workflow',
] as const;

/** `correct`, of events alone: to void or replace what was accepted. */
export type Action = 'read' | 'write' | 'correct';
export type UserType = 'user' | 'service_account';

export type Role = {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly permissions: Readonly<Record<string, readonly Action[]>>;
  /** Who may hold it. */
  readonly user_types: readonly UserType[];
};

const everywhere = (...actions: Action[]) => Object.fromEntries(ENTITIES.map((entity) => [entity, actions]));

export const ROLES: readonly Role[] = [
  {
    id: 'super_admin',
    name: 'Super admin',
    description: 'Everything, including users and their keys.',
    permissions: { ...everywhere('read', 'write'), event: ['read', 'write', 'correct'] },
    user_types: ['user', 'service_account'],
  },
  {
    id: 'all_writer',
    name: 'Writer',
    description: 'Reads and writes every record.',
    permissions: { ...everywhere('read', 'write'), event: ['read', 'write', 'correct'] },
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

export function isSuperAdmin({ roles }: { roles: readonly string[] }): boolean {
  return roles.includes('super_admin');
}

export function requireSuperAdmin(principal: { roles: readonly string[] }, deed: string): void {
  if (!isSuperAdmin(principal)) throw new FarthingError('permission_denied', `only a super_admin may ${deed}`);
}

/** Roles that exist and that this type of user may hold. */
export function checkRoles(roles: readonly string[], type: UserType): void {
  for (const id of roles) {
    const role = roleOf(id);
    const allowed = ROLES.filter((known) => known.user_types.includes(type)).map((known) => known.id);
    if (!role?.user_types.includes(type)) throw invalid('roles', `a ${type} cannot hold ${id}`, { allowed });
  }
}

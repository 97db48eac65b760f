/** Updates a user's profile and roles, and archives service accounts. */
import { checkRoles, requireSuperAdmin, type UserType } from '../../../core/foundation/access/role.ts';
import { FarthingError, notAllowed } from '../../../core/foundation/error.ts';
import { type Author } from '../../../core/foundation/stamp.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import { UserModel } from '../../../storage/models/foundation/user.ts';
import { countActiveKeys } from '../../../storage/models/operations/secret.ts';

type UserSubject = { readonly tenant_id: string; readonly id: string; readonly author: Author };
type UserProfileChanges = {
  readonly name?: string | undefined;
  /** First email of the user. */
  readonly email?: string | undefined;
  readonly metadata?: Record<string, string> | undefined;
};
/** Writes the password that actions/operations/access/change-password.ts has checked. */
type WritePassword = (transaction: Database, now: Date) => Promise<void>;

/** Changes a user. An omitted field keeps its value; `metadata` replaces the map. */
export async function changeUser(
  { postgres }: Pick<Stores, 'postgres'>,
  {
    changes,
    only,
    newPassword,
    ...subject
  }: UserSubject & { changes: UserProfileChanges; only?: UserType; newPassword?: WritePassword },
): Promise<UserModel> {
  return postgres.transaction(async (transaction) => {
    const user = await fetchLive(transaction, subject);
    if (only && user.type !== only) throw notAllowed(`${user.id} is not a ${only}`);
    await newPassword?.(transaction, subject.author.now);
    return UserModel.change(user, changes, { by: subject.author, database: transaction });
  });
}

/** Replaces the roles of a user. Keys inherit the roles, so a user with active keys keeps them. Nobody changes their own roles. */
export async function replaceRoles(
  { postgres }: Pick<Stores, 'postgres'>,
  {
    principal,
    roles,
    ...subject
  }: UserSubject & { principal: { user_id: string; roles: readonly string[] }; roles: string[] },
): Promise<UserModel> {
  requireSuperAdmin(principal, 'change roles');
  if (principal.user_id === subject.id) throw new FarthingError('permission_denied', 'nobody changes their own roles');
  return postgres.transaction(async (transaction) => {
    const user = await fetchLive(transaction, subject);
    checkRoles(roles, user.type);
    if (user.type === 'service_account' && roles.length === 0)
      throw notAllowed('a service account needs at least one role');
    if ((await countActiveKeys(transaction, user, subject.author.now)) > 0)
      throw notAllowed('this user has active API keys: revoke them first');
    return UserModel.change(user, { roles: [...new Set(roles)] }, { by: subject.author, database: transaction });
  });
}

export async function archiveServiceAccount(
  { postgres }: Pick<Stores, 'postgres'>,
  subject: UserSubject,
): Promise<void> {
  await postgres.transaction(async (transaction) => {
    const user = await fetchLive(transaction, subject);
    if (user.type !== 'service_account') throw notAllowed('only service accounts can be deleted');
    if ((await countActiveKeys(transaction, user, subject.author.now)) > 0)
      throw notAllowed('this service account has active API keys: revoke them first');
    await UserModel.change(user, { status: 'archived' }, { by: subject.author, database: transaction });
  });
}

async function fetchLive(transaction: Database, { tenant_id, id }: UserSubject): Promise<UserModel> {
  const user = await UserModel.fetch(tenant_id, id, { database: transaction, lock: true });
  if (user.status !== 'published') throw notAllowed(`user ${id} is archived`);
  return user;
}

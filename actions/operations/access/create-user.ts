/** Creates a user or service account; only a super_admin may. A user has an email, a service account has roles. */
import { checkRoles, requireSuperAdmin, type UserType } from '../../../core/foundation/access/role.ts';
import { invalid } from '../../../core/foundation/error.ts';
import { createdBy } from '../../../core/foundation/stamp.ts';
import { newId } from '../../../storage/foundation/new-id.ts';
import { hashPassword, makePassword } from '../../../storage/foundation/secrets/password.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { UserModel } from '../../../storage/models/foundation/user.ts';
import { addPassword } from '../../../storage/models/operations/user-password.ts';
import { checkUserLimit } from './limits.ts';

type CreateUserInput = {
  readonly type: UserType;
  readonly name?: string | null;
  readonly email?: string | null;
  readonly roles?: readonly string[] | null;
};

type Inviter = { readonly user_id: string; readonly tenant_id: string; readonly roles: readonly string[] };

/** Creates a user with a password that is returned once and is to be changed, or a service account, which signs in with its keys only. */
export async function createUser(
  { postgres }: Pick<Stores, 'postgres'>,
  { inviter, wanted, now }: { inviter: Inviter; wanted: CreateUserInput; now: Date },
): Promise<{ user: UserModel; password: string | null }> {
  requireSuperAdmin(inviter, 'create users');
  checkUser(wanted);
  const { type, name, email, roles } = wanted;
  const { tenant_id } = inviter;
  const record = {
    id: newId('user', now.getTime()),
    tenant_id,
    type,
    name: name ?? '',
    email: email ?? null,
    roles: [...new Set(roles ?? [])],
    ...createdBy({ user_id: inviter.user_id, now }),
  };
  const password = email ? makePassword() : null;
  const hash = password && (await hashPassword(password));
  return postgres.transaction(async (database) => {
    if (type === 'user') await checkUserLimit(database, tenant_id);
    const conflict = `a user with the email ${email} exists already`;
    const user = await UserModel.add(record, { database, conflict });
    if (email && hash) await addPassword(database, { user_id: user.id, tenant_id, email, hash, now });
    return { user, password };
  });
}

function checkUser({ type, email, roles }: CreateUserInput): void {
  if (type === 'user' && !email) throw invalid('email', 'is required for a user');
  if (type === 'service_account' && email) throw invalid('email', 'a service account has none');
  if (type === 'service_account' && !roles?.length) throw invalid('roles', 'a service account needs at least one');
  checkRoles(roles ?? [], type);
}

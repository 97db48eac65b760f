/** Table `user_passwords`: the sign-in of a user, separate from the user's readable record. */
import type { Database } from '../../foundation/stores.ts';
import { toConflictError } from '../foundation/statements.ts';
import { deleteUserSessions } from './session.ts';

type UserPasswordInput = {
  readonly user_id: string;
  readonly tenant_id: string;
  readonly email: string;
  readonly hash: string;
  readonly now: Date;
};

/** Adds the first password of a user. An email signs in to one tenant, so it has one password across all tenants. */
export async function addPassword(
  database: Database,
  { user_id, tenant_id, email, hash, now }: UserPasswordInput,
): Promise<void> {
  try {
    await database.raw(
      'insert into user_passwords (user_id, tenant_id, email_key, hash, changed_at) values (?, ?, lower(?), ?, ?)',
      [user_id, tenant_id, email, hash, now],
    );
  } catch (error) {
    throw toConflictError(error, `a user with the email ${email} exists already`);
  }
}

type PasswordReplacement = Omit<UserPasswordInput, 'email'> & {
  /** Session that continues. */
  readonly except?: string | null;
  /** Hash of the password that is replaced; absent for any. */
  readonly current?: string;
};

/**
 * Replaces the password. Earlier tokens are no longer accepted, and the sessions of the user end, except the given one. Returns false, and
 * changes nothing, if another change replaced the current password before.
 */
export async function replacePassword(
  database: Database,
  { user_id, tenant_id, hash, except = null, current, now }: PasswordReplacement,
): Promise<boolean> {
  const { rows } = await database.raw(
    `update user_passwords set hash = ?, changed_at = ?
      where user_id = ? and tenant_id = ? and hash = coalesce(?::text, hash) returning user_id`,
    [hash, now, user_id, tenant_id, current ?? null],
  );
  if (rows.length === 0) return false;
  await deleteUserSessions(database, { tenant_id, user_id, except });
  return true;
}

/** The hash of this user's password; undefined if the user cannot sign in. */
export async function findPassword(
  database: Database,
  { user_id, tenant_id }: { user_id: string; tenant_id: string },
): Promise<string | undefined> {
  const { rows } = await database.raw('select hash from user_passwords where user_id = ? and tenant_id = ?', [
    user_id,
    tenant_id,
  ]);
  return rows[0]?.hash;
}

/** Locks the password against a change until the transaction ends. Undefined if the user cannot sign in. */
export async function lockPassword(
  transaction: Database,
  { user_id, tenant_id }: { user_id: string; tenant_id: string },
): Promise<string | undefined> {
  const { rows } = await transaction.raw(
    'select hash from user_passwords where user_id = ? and tenant_id = ? for share',
    [user_id, tenant_id],
  );
  return rows[0]?.hash;
}

export type SignIn = { readonly user_id: string; readonly tenant_id: string; readonly hash: string };

/** The user with this email across all tenants; undefined for archived users. */
export async function findSignIn(database: Database, email: string): Promise<SignIn | undefined> {
  const { rows } = await database.raw(
    `select p.user_id, p.tenant_id, p.hash
       from user_passwords p
       join users u on u.id = p.user_id and u.tenant_id = p.tenant_id and u.status = 'published'
       join tenants t on t.id = p.tenant_id and t.status = 'published'
      where p.email_key = lower(?)`,
    [email],
  );
  return rows[0];
}

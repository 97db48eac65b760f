/** Changes a user's own password, which requires the current one. Earlier tokens become invalid, and other sessions end. */
import { FarthingError, invalid, notAllowed } from '../../../core/foundation/error.ts';
import { hashPassword, isPassword } from '../../../storage/foundation/secrets/password.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import { findPassword, replacePassword } from '../../../storage/models/operations/user-password.ts';

type PasswordOwner = {
  readonly user_id: string;
  readonly tenant_id: string;
  /** Session of the request; it continues. */
  readonly session_id: string | null;
};
type ChangePasswordInput = { readonly password: string; readonly current_password?: string | null | undefined };

/** Checks and hashes the passwords before the transaction that stores the new one, because both take long. */
export async function preparePassword(
  { postgres }: Pick<Stores, 'postgres'>,
  { session_id, ...owner }: PasswordOwner,
  { password, current_password }: ChangePasswordInput,
): Promise<(transaction: Database, now: Date) => Promise<void>> {
  const storedHash = await findPassword(postgres, owner);
  if (storedHash === undefined)
    throw notAllowed('this user does not sign in with a password: a user without one sends email, too');
  if (!current_password) throw invalid('current_password', 'is required to change the password');
  if (!(await isPassword(current_password, storedHash))) throw refuseCurrentPassword();
  const hash = await hashPassword(password);
  return async (transaction, now) => {
    const replacement = { ...owner, hash, except: session_id, current: storedHash, now };
    // Another change may have been stored since the check; it has ended this session.
    if (!(await replacePassword(transaction, replacement))) throw refuseCurrentPassword();
  };
}

function refuseCurrentPassword(): FarthingError {
  return new FarthingError('permission_denied', 'current_password: is not the password', {
    details: { field: 'current_password' },
  });
}

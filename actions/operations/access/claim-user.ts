/**
 * Gives a user without an email, such as the one of the first start, the email and the password to sign in with (docs/permissions.md,
 * "Signing in"). It happens once: an email does not change later.
 */
import { invalid } from '../../../core/foundation/error.ts';
import { hashPassword } from '../../../storage/foundation/secrets/password.ts';
import type { Database, Stores } from '../../../storage/foundation/stores.ts';
import { UserModel } from '../../../storage/models/foundation/user.ts';
import { deleteConsoleLink } from '../../../storage/models/operations/console-link.ts';
import { deleteUserSessions } from '../../../storage/models/operations/session.ts';
import { addPassword } from '../../../storage/models/operations/user-password.ts';

type ClaimingUser = {
  readonly user_id: string;
  readonly tenant_id: string;
  /** Session of the request; it continues. */
  readonly session_id: string | null;
};
type ClaimInput = { readonly email: string; readonly password?: string | undefined };

/**
 * Checks the claim, and hashes the password before the transaction that stores it. Undefined if the user has this email already, so that a
 * profile may be sent back as it was read.
 */
export async function prepareClaim(
  { postgres }: Pick<Stores, 'postgres'>,
  { user_id, tenant_id, session_id }: ClaimingUser,
  { email, password }: ClaimInput,
): Promise<((transaction: Database, now: Date) => Promise<void>) | undefined> {
  const user = await UserModel.fetch(tenant_id, user_id, { database: postgres });
  if (user.email?.toLowerCase() === email.toLowerCase()) return undefined;
  if (user.type !== 'user') throw invalid('email', 'a service account has none');
  if (user.email !== null) throw invalid('email', 'cannot be changed: create another user with POST /users');
  if (password === undefined) throw invalid('password', 'is required with the first email');
  const hash = await hashPassword(password);
  return async (transaction, now) => {
    // A concurrent claim fails with 409, because a user has one password.
    await addPassword(transaction, { user_id, tenant_id, email, hash, now });
    await deleteConsoleLink(transaction, tenant_id);
    // An earlier link may have been read in a log.
    await deleteUserSessions(transaction, { tenant_id, user_id, except: session_id });
  };
}

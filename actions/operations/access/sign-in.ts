/** Signs a user in by email and password. A wrong email and a wrong password get the same answer. */
import { FarthingError, invalid } from '../../../core/foundation/error.ts';
import { isPassword } from '../../../storage/foundation/secrets/password.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { EnvironmentModel } from '../../../storage/models/foundation/environment.ts';
import { findSignIn, type SignIn } from '../../../storage/models/operations/user-password.ts';

type SignInInput = {
  readonly email: string;
  readonly password: string;
  /** Restricts the token to this environment. */
  readonly environment_id?: string | null | undefined;
};

type SignInResult = {
  readonly user_id: string;
  readonly tenant_id: string;
  readonly environment_id: string | null;
};

export async function signIn(
  { postgres }: Pick<Stores, 'postgres'>,
  { email, password, environment_id }: SignInInput,
): Promise<SignInResult> {
  const { user_id, tenant_id } = await verifyPassword({ postgres }, { email, password });
  if (!environment_id) return { user_id, tenant_id, environment_id: null };
  const [environment] = await EnvironmentModel.ofTenant(tenant_id, postgres).where({
    id: environment_id,
    status: 'published',
  });
  if (!environment) throw invalid('environment_id', 'is no environment of this tenant');
  return { user_id, tenant_id, environment_id };
}

/** Returns the user of the email, or throws 403 if the password is wrong. */
export async function verifyPassword(
  { postgres }: Pick<Stores, 'postgres'>,
  { email, password }: { readonly email: string; readonly password: string },
): Promise<SignIn> {
  const known = await findSignIn(postgres, email);
  const isRight = await isPassword(password, known?.hash);
  if (!known || !isRight) throw refuseSignIn();
  return known;
}

export function refuseSignIn(): FarthingError {
  return new FarthingError('permission_denied', 'the email or the password is wrong');
}

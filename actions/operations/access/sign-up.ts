/**
 * Creates a tenant with its first user, who may do everything in it, and two environments, one for tests and one for production
 * (docs/permissions.md, "Signing in").
 */

import { hashPassword } from '../../../storage/foundation/secrets/password.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { makeTenant, type NewTenant } from '../../../storage/models/operations/new-tenant.ts';
import { addPassword } from '../../../storage/models/operations/user-password.ts';

type SignUpInput = {
  readonly email: string;
  readonly password: string;
  readonly tenant_name?: string | null | undefined;
  readonly billing_details?: Record<string, unknown> | null | undefined;
  readonly metadata?: Record<string, string> | null | undefined;
};

export async function signUp(
  { postgres }: Pick<Stores, 'postgres'>,
  { wanted, now }: { wanted: SignUpInput; now: Date },
): Promise<NewTenant> {
  const { email, password, tenant_name, billing_details, metadata } = wanted;
  const hash = await hashPassword(password);
  return postgres.transaction(async (transaction) => {
    const made = await makeTenant(transaction, {
      name: tenant_name || email.slice(email.indexOf('@') + 1),
      is_named: true,
      billing_details,
      environments: [
        { name: 'Development', type: 'development' },
        { name: 'Production', type: 'production' },
      ],
      user: { name: email.slice(0, email.indexOf('@')), email, ...(metadata ? { metadata } : {}) },
      now,
    });
    const { id: user_id, tenant_id } = made.user;
    await addPassword(transaction, { user_id, tenant_id, email, hash, now });
    return made;
  });
}

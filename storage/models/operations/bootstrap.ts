/**
 * First start: creates a tenant, an environment, a user and a key, so that the first request can be made. Every process calls this
 * at every start; a lock lets one of them do the work.
 */

import { newId } from '../../foundation/new-id.ts';
import { hashApiKey, makeApiKey, maskApiKey } from '../../foundation/secrets/api-key.ts';
import type { Database } from '../../foundation/stores.ts';
import { EnvironmentModel } from '../foundation/environment.ts';
import { TenantModel } from '../foundation/tenant.ts';
import { UserModel } from '../foundation/user.ts';
import { makeTenant } from './new-tenant.ts';
import { SecretModel } from './secret.ts';

type BootstrapResult = {
  readonly tenant: TenantModel;
  readonly environment: EnvironmentModel;
  readonly user: UserModel;
  /** The configured key, or the random one made on the first start; null if it was shown before. */
  readonly api_key: string | null;
};

/** Key of an advisory lock: arbitrary, but equal in every process. */
const LOCK = 7_155_018;

export async function bootstrap(database: Database, input: { api_key?: string; now: Date }): Promise<BootstrapResult> {
  return database.transaction(async (transaction) => {
    await transaction.raw('select pg_advisory_xact_lock(?)', [LOCK]);
    const known = await findFirst(transaction);
    const made = known ?? (await makeFirst(transaction, input.now));
    const api_key = input.api_key ?? (known ? null : makeApiKey('private_key'));
    if (api_key !== null) await allowKey(transaction, { ...made, api_key, now: input.now });
    return { ...made, api_key };
  });
}

type First = Omit<BootstrapResult, 'api_key'>;

/** The records of the first start: the oldest of each kind. */
async function findFirst(database: Database): Promise<First | undefined> {
  const oldest = await database.raw('select id from tenants order by created_at, id limit 1');
  const id = oldest.rows[0]?.id;
  if (id === undefined) return undefined;
  const [tenant] = await TenantModel.ofTenant(id, database);
  const [environment] = await EnvironmentModel.ofTenant(id, database).orderBy(['created_at', 'id']).limit(1);
  const [user] = await UserModel.ofTenant(id, database).orderBy(['created_at', 'id']).limit(1);
  if (!tenant || !environment || !user) throw new Error(`tenant ${id} has no environment or no user`);
  return { tenant, environment, user };
}

async function makeFirst(database: Database, now: Date): Promise<First> {
  const { tenant, environments, user } = await makeTenant(database, {
    name: 'Default',
    is_named: false,
    environments: [{ name: 'Development', type: 'development' }],
    user: { name: 'Admin' },
    now,
  });
  return { tenant, environment: environments[0]!, user };
}

/** Stores the configured key. If it was revoked, it stays revoked. */
async function allowKey(database: Database, given: First & { api_key: string; now: Date }): Promise<void> {
  const { tenant, environment, user, api_key, now } = given;
  const key_hash = hashApiKey(api_key);
  const { rows } = await database.raw('select 1 from secrets where key_hash = ?', [key_hash]);
  if (rows.length > 0) return;
  const scope = { tenant_id: tenant.id, environment_id: environment.id };
  const record = {
    id: newId('secret', now.getTime()),
    user_id: user.id,
    name: 'First key',
    type: 'private_key',
    key_hash,
    display_id: maskApiKey(api_key),
    created_at: now.toISOString(),
    updated_at: now.toISOString(),
    created_by: user.id,
    updated_by: user.id,
  };
  await SecretModel.add(scope, record, { database });
}

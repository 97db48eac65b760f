/**
 * Seals stored secrets of endpoints and credentials of connections that are unsealed or sealed with an older key
 * (docs/decisions/0022-tenant-isolation.md).
 */
import type { SecretSealer } from '../../../storage/foundation/secrets/sealing.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';

type StoredSecrets = {
  id: string;
  tenant_id: string;
  environment_id: string;
  secret: string;
  previous_secret: string | null;
};

/** Returns the number of sealed records. A secret that is replaced meanwhile is not overwritten. */
export async function sealSecrets({ postgres }: Pick<Stores, 'postgres'>, sealing: SecretSealer): Promise<number> {
  const endpoints: StoredSecrets[] = await postgres('webhook_endpoints')
    .whereNot('secret', '')
    .select('id', 'tenant_id', 'environment_id', 'secret', 'previous_secret');
  let sealed = 0;
  for (const { secret, previous_secret, ...which } of endpoints) {
    const resealed = {
      secret: sealing.reseal(secret),
      previous_secret: previous_secret && sealing.reseal(previous_secret),
    };
    if (resealed.secret === secret && resealed.previous_secret === previous_secret) continue;
    sealed += await postgres('webhook_endpoints')
      .where({ ...which, secret, previous_secret })
      .update(resealed);
  }
  return sealed + (await sealCredentials({ postgres }, sealing));
}

async function sealCredentials({ postgres }: Pick<Stores, 'postgres'>, sealing: SecretSealer): Promise<number> {
  const connections: Omit<StoredSecrets, 'previous_secret'>[] = await postgres('connections')
    .whereNot('secret', '')
    .select('id', 'tenant_id', 'environment_id', 'secret');
  let sealed = 0;
  for (const { secret, ...which } of connections) {
    const resealed = sealing.reseal(secret);
    if (resealed !== secret)
      sealed += await postgres('connections')
        .where({ ...which, secret })
        .update({ secret: resealed });
  }
  return sealed;
}

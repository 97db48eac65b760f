/**
 * Seals stored secrets of endpoints and credentials of connections that are unsealed, or sealed with an older key or in an older form
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

type StoredCredentials = Omit<StoredSecrets, 'previous_secret'> & { oauth_tokens: string };

/**
 * Returns the number of sealed records. A secret that is replaced meanwhile is not overwritten. A secret that cannot be decrypted stays
 * unchanged, and its error is thrown after all others are sealed.
 */
export async function sealSecrets({ postgres }: Pick<Stores, 'postgres'>, sealing: SecretSealer): Promise<number> {
  const failures: unknown[] = [];
  const reseal: SecretSealer['reseal'] = (text, owner) => {
    try {
      return sealing.reseal(text, owner);
    } catch (error) {
      failures.push(error);
      return text;
    }
  };
  const sealed = (await sealEndpoints({ postgres }, reseal)) + (await sealCredentials({ postgres }, reseal));
  if (failures.length > 0) throw failures[0];
  return sealed;
}

async function sealEndpoints({ postgres }: Pick<Stores, 'postgres'>, reseal: SecretSealer['reseal']): Promise<number> {
  const endpoints: StoredSecrets[] = await postgres('webhook_endpoints')
    .whereNot('secret', '')
    .select('id', 'tenant_id', 'environment_id', 'secret', 'previous_secret');
  let sealed = 0;
  for (const { secret, previous_secret, ...which } of endpoints) {
    const resealed = {
      secret: reseal(secret, which),
      previous_secret: previous_secret && reseal(previous_secret, which),
    };
    if (resealed.secret === secret && resealed.previous_secret === previous_secret) continue;
    sealed += await postgres('webhook_endpoints')
      .where({ ...which, secret, previous_secret })
      .update(resealed);
  }
  return sealed;
}

async function sealCredentials(
  { postgres }: Pick<Stores, 'postgres'>,
  reseal: SecretSealer['reseal'],
): Promise<number> {
  const connections: StoredCredentials[] = await postgres('connections')
    .whereNot('secret', '')
    .select('id', 'tenant_id', 'environment_id', 'secret', 'oauth_tokens');
  let sealed = 0;
  for (const { secret, oauth_tokens, ...which } of connections) {
    const resealed = { secret: reseal(secret, which), oauth_tokens: oauth_tokens && reseal(oauth_tokens, which) };
    if (resealed.secret !== secret || resealed.oauth_tokens !== oauth_tokens)
      sealed += await postgres('connections')
        .where({ ...which, secret, oauth_tokens })
        .update(resealed);
  }
  return sealed;
}

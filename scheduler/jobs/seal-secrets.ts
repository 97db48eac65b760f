/**
 * Encrypts secrets that are stored in plain text, or with a key that is being replaced
 * (docs/decisions/0022-tenant-isolation.md).
 */
import { sealSecrets } from '../../actions/delivery/webhooks/seal-secrets.ts';
import type { SecretSealer } from '../../storage/foundation/secrets/sealing.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import type { ScheduledJob } from '../job.ts';

export function sealSecretsJob(
  stores: Stores,
  { sealing, every_seconds }: { sealing: SecretSealer; every_seconds: number },
): ScheduledJob {
  return {
    name: 'seal-secrets',
    every_seconds,
    run: async () => ({ done: { sealed: await sealSecrets(stores, sealing) }, waiting: [], failed: [] }),
  };
}

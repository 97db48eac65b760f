/** Enqueues all checks that depend on the amount of usage, after usage arrives or is corrected. The checks run within seconds. */
import type { BucketRow } from '../../core/metering/bucket-aggregator.ts';
import type { Database } from '../foundation/stores.ts';
import { enqueueAlertChecks } from './alert-arrivals.ts';
import { enqueueThresholdChecks } from './threshold-arrivals.ts';

type UsageArrival = Pick<BucketRow, 'tenant_id' | 'environment_id' | 'external_customer_id'>;

export async function enqueueUsageChecks(database: Database, arrivals: readonly UsageArrival[]): Promise<void> {
  await enqueueThresholdChecks(database, arrivals);
  await enqueueAlertChecks(database, arrivals);
}

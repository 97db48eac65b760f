/** Usage has arrived or was corrected: whatever goes by what it comes to looks within seconds. Who asks for one of these looks asks for all. */
import type { BucketRow } from '../../core/metering/plan.ts';
import type { Database } from '../stores.ts';
import { enqueueAlertChecks } from './alert-arrivals.ts';
import { enqueueThresholdChecks } from './threshold-arrivals.ts';

type UsageArrival = Pick<BucketRow, 'tenant_id' | 'environment_id' | 'external_customer_id'>;

export async function enqueueUsageChecks(database: Database, arrivals: readonly UsageArrival[]): Promise<void> {
  await enqueueThresholdChecks(database, arrivals);
  await enqueueAlertChecks(database, arrivals);
}

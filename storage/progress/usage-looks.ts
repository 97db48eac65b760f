/** Usage has arrived or was corrected: whatever goes by what it comes to looks within seconds. Who asks for one of these looks asks for all. */
import type { BucketRow } from '../../core/metering/plan.ts';
import type { Database } from '../stores.ts';
import { askForAlerts } from './alert-arrivals.ts';
import { askForThresholds } from './threshold-arrivals.ts';

type Arrival = Pick<BucketRow, 'tenant_id' | 'environment_id' | 'external_customer_id'>;

export async function askForLooks(database: Database, arrivals: readonly Arrival[]): Promise<void> {
  await askForThresholds(database, arrivals);
  await askForAlerts(database, arrivals);
}

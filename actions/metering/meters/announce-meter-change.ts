/**
 * Announces a new or changed meter to the event counters, in the transaction of the change: the version to count by, and the control
 * message that the relay appends to every partition of the log (the barrier). No other code does this.
 */
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Database } from '../../../storage/foundation/stores.ts';
import type { MeterModel } from '../../../storage/models/metering/meter.ts';
import { announceMeterVersion } from '../../../storage/progress/meter-versions.ts';

export async function announceMeterChange(transaction: Database, scope: Scope, meter: MeterModel): Promise<void> {
  const { id, event_name, filters, aggregation, reset_usage } = meter;
  await announceMeterVersion(transaction, scope, {
    meter_id: id,
    version: meter.version ?? 1,
    definition: meter.status === 'published' ? { id, event_name, filters, aggregation, reset_usage } : null,
  });
}

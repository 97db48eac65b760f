/** Counts the reserved and the remaining units of a feature for a customer (docs/rules/reservations.md, "What is answered"). */

import { deriveFeatureVerdict, type FeatureRoom } from '../../core/credits/reservations/room.ts';
import { notFound } from '../../core/foundation/error.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import { type CompiledMeter, compiledMeter } from '../../core/metering/compiled-meter.ts';
import type { Database, Stores } from '../../storage/foundation/stores.ts';
import type { CustomerModel } from '../../storage/models/catalog/customer.ts';
import { FeatureModel } from '../../storage/models/catalog/feature.ts';
import { MeterModel } from '../../storage/models/metering/meter.ts';
import { lockPool, ReservationModel } from '../../storage/models/reservations/reservation.ts';
import { computeRoom, type GatheredRoom, gatherRoom, listSharingCustomers } from './room-of-feature.ts';
import { sendCommitted } from './send-committed.ts';
import type { ReservationCounter } from './submit-reservation.ts';

type FeatureCounterInput = {
  readonly customer: CustomerModel;
  readonly feature: FeatureModel;
  readonly when_in_doubt: 'deny' | 'allow';
};

export function createFeatureCounter(
  stores: Stores,
  scope: Scope,
  { customer, feature, when_in_doubt }: FeatureCounterInput,
): ReservationCounter<GatheredRoom, FeatureRoom> {
  const { tenant_id, environment_id } = scope;
  const pool = { tenant_id, environment_id, customer_id: customer.id, subject_id: feature.id };
  const { postgres, log } = stores;
  /** Customers whose unsent commits `mend` sends: at first only this one; after `gather` also those that share its limit. */
  let sharing: readonly string[] = [customer.id];
  return {
    pool,
    async mend() {
      const unsent = await ReservationModel.listUnsent(pool, sharing, postgres);
      await Promise.all(unsent.map((reservation) => sendCommitted(stores, reservation)));
    },
    async gather(now) {
      const gathered = await gatherRoom(stores, { customer, feature, reading: { scope, database: postgres, now } });
      if (gathered.kind === 'counted') sharing = [...new Set([customer.id, ...listSharingCustomers(gathered)])];
      return gathered;
    },
    createPool: (gathered) => ({
      pool,
      subject: { feature_id: feature.id },
      lock: (transaction, now) => lockPool(transaction, pool, now),
      async readRoom(transaction, now) {
        if (gathered === null) return { computeVerdict: null, room: null };
        const room = await computeRoom(transaction, gathered, { pool, partitions: log.partition_count, now });
        return {
          computeVerdict: (quantity, { held, used }) =>
            deriveFeatureVerdict(room, { quantity, held: held.plus(used), when_in_doubt }),
          room,
        };
      },
    }),
  };
}

export async function loadCompiledMeter(
  scope: Scope,
  { id, meter_id }: FeatureModel,
  database: Database,
): Promise<CompiledMeter> {
  if (!meter_id) throw notFound('meter of feature', id);
  return compiledMeter(await MeterModel.fetch(scope, meter_id, { database }));
}

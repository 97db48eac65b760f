/**
 * Loads the versions of a meter and the progress of the stores in one statement, so that both are of one moment. Concurrent callers share
 * it.
 */
import { groupBy } from '../../core/foundation/group-by.ts';
import { type Scope, scopeKey } from '../../core/foundation/scope.ts';
import { KeyedBatchLoader } from '../concurrency/batch-loader.ts';
import type { Database } from '../foundation/stores.ts';
import { PREPARED } from '../postgres/interceptors/bundled-statements.ts';
import type { MeterVersion } from './meter-versions.ts';
import { type PartitionProgress, toPartitionProgress } from './partition-progress.ts';

/** The newest version of a meter, and the newest with a definition; they differ after the meter was stopped. */
type CurrentVersions = { readonly newest: MeterVersion; readonly counting: MeterVersion };

export type CountingMoment = {
  readonly progress: readonly PartitionProgress[];
  /** Undefined for a meter without versions. */
  readonly versions: CurrentVersions | undefined;
  /** Whether the correction of any event of the environment was requested. */
  readonly has_corrections: boolean;
};

type MeterKey = Scope & { readonly meter_id: string };

export function loadCountingMoment(
  database: Database,
  { tenant_id, environment_id }: Scope,
  meter_id: string,
): Promise<CountingMoment> {
  return MOMENTS.load(database, { tenant_id, environment_id, meter_id });
}

const METERS_MAX = 500;

/** The versions are only in the first row. There is one row per partition, and one row if no partition exists. */
const MOMENT = `
  select s.*, case when row_number() over (order by s.partition) = 1 then v.versions end as versions
    from (select coalesce(json_agg(v order by v.version desc), '[]') as versions
            from (select distinct * from unnest(?::text[], ?::text[], ?::text[]) as k(tenant_id, environment_id, meter_id)) as k
           cross join lateral (
             select m.tenant_id, m.environment_id, m.meter_id, m.version, m.definition, m.state,
                    exists (select from event_corrections c
                             where c.tenant_id = m.tenant_id and c.environment_id = m.environment_id) as has_corrections
               from meter_versions m
              where m.tenant_id = k.tenant_id and m.environment_id = k.environment_id and m.meter_id = k.meter_id
              order by m.version desc limit 2) as v) as v
    left join slices s on true
   order by s.partition`;

const MOMENTS = new KeyedBatchLoader<Database, MeterKey, CountingMoment>(
  async (database, meters) => {
    const keys = [
      meters.map((one) => one.tenant_id),
      meters.map((one) => one.environment_id),
      meters.map((one) => one.meter_id),
    ];
    const { rows } = await database.raw(MOMENT, keys as never).options(PREPARED);
    const progress = rows
      .filter((row: { partition: number | null }) => row.partition !== null)
      .map(toPartitionProgress);
    const byMeter = groupBy(rows[0].versions as (MeterVersion & { has_corrections: boolean })[], meterKey);
    return meters.map((one) => {
      const versions = byMeter.get(meterKey(one)) ?? [];
      const has_corrections = versions.some((version) => version.has_corrections);
      return { progress, versions: chooseCurrentVersions(versions), has_corrections };
    });
  },
  { batchMax: METERS_MAX },
);

function chooseCurrentVersions([newest, before]: readonly MeterVersion[]): CurrentVersions | undefined {
  const counting = newest?.definition === null ? before : newest;
  return newest && counting ? { newest, counting } : undefined;
}

function meterKey({ tenant_id, environment_id, meter_id }: MeterKey): string {
  return `${scopeKey({ tenant_id, environment_id })}/${meter_id}`;
}

/**
 * Worst-case work of a record of the log in a slice. A slice is cut after one second of such work (pipeline/processor.ts), so that one
 * tenant's events delay neither the partition nor its lease.
 */
import type { MeterIndex } from '../../core/metering/match.ts';
import { computeWorstIndexCost, type WorstCost, worstWork } from '../../core/metering/meter-cost.ts';
import type { LogRecord } from '../../storage/log/log.ts';
import type { MeterCatalogue } from '../control/meter-catalogue.ts';

/** Work after which a slice is cut: one second, in the unit of core/metering/expression/work.ts. */
export const SLICE_WORK_MAX = 10_000_000;

export function computeRecordWork(catalogue: MeterCatalogue, record: LogRecord): number {
  if (record.kind === 'control') return 0;
  const worst = getWorstCost(catalogue.findMeters(record));
  return worstWork(worst, { events: record.event_count, bytes: record.body.length });
}

/** Worst cost by meter index. An index is immutable: a changed meter creates a new one. */
const known = new WeakMap<MeterIndex, WorstCost>();

function getWorstCost(index: MeterIndex): WorstCost {
  let worst = known.get(index);
  if (worst === undefined) known.set(index, (worst = computeWorstIndexCost(index)));
  return worst;
}

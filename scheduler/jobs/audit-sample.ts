/**
 * Audits some of everything, taken by chance, all the time: that usage rows equal the raw events, and that these are all that
 * was accepted, each once, is checked and not believed.
 */
import { type CheckName, checkOf, type Finding } from '../../actions/audit/findings.ts';
import { sampleRunning, tellOfOthers } from '../../actions/audit/running.ts';
import { sampleRecords } from '../../actions/audit/sample-records.ts';
import { auditSample, type Difference } from '../../actions/audit/usage.ts';
import { formatMs, toMs } from '../../core/time/instant.ts';
import type { Stores } from '../../storage/stores.ts';
import type { Job } from '../job.ts';
import { auditMetrics } from '../metrics.ts';

const DAYS_PER_RUN = 2;
/** Where one row differs a million may: the log says the first, the metric counts all. */
const TOLD_MAX = 20;

export function auditSampleJob(stores: Stores, every_seconds: number): Job {
  return {
    name: 'audit-sample',
    every_seconds,
    async run(now) {
      const told = new Told();
      const { ranges, records } = await sampleRecords(stores, Math.random, (finding) =>
        told.add(checkOf(finding.kind), finding.kind, saidOf(finding)),
      );
      const tell = (finding: Finding) => told.add(checkOf(finding.kind), finding.kind, saidOf(finding));
      await sampleRunning(stores, { chance: Math.random, now }, tell);
      await tellOfOthers(stores, tell);
      const options = { size: DAYS_PER_RUN, chance: Math.random };
      const { days, rows } = await auditSample(stores, options, (difference) =>
        told.add('usage', difference.meter_id, textOf(difference)),
      );
      auditMetrics.sampled({ days, rows, ranges, differences: told.counts });
      return { done: { days, rows, ranges, records, differences: told.total }, waiting: [], failed: told.failed() };
    },
  };
}

class Told {
  readonly counts = new Map<CheckName, number>();
  readonly #first: { id: string; error: Error }[] = [];

  add(check: CheckName, id: string, text: string): void {
    this.counts.set(check, (this.counts.get(check) ?? 0) + 1);
    if (this.#first.length < TOLD_MAX) this.#first.push({ id, error: new Error(text) });
  }

  get total(): number {
    return [...this.counts.values()].reduce((sum, count) => sum + count, 0);
  }

  failed() {
    const more = this.total - this.#first.length;
    if (more <= 0) return this.#first;
    return [...this.#first, { id: 'all', error: new Error(`and ${more} more differences`) }];
  }
}

function saidOf({ kind, count, what, partition, from_offset, to_offset }: Finding): string {
  const where = partition === undefined ? '' : ` of partition ${partition}`;
  const range = from_offset === undefined ? '' : `, offsets ${from_offset} to ${to_offset}`;
  return `${kind}${where}${range}: ${count}: ${what}; run npm run audit, and see docs/operations.md, "What the audit finds"`;
}

function textOf({ size, bucket_start_us, field, stored, expected }: Difference): string {
  const start = formatMs(toMs(bucket_start_us));
  return `the usage row ${size} ${start} differs in ${field}: ${stored} is stored, the raw events say ${expected}; run npm run audit -- --repair`;
}

/**
 * Audits a random sample of usage at each run: bucket rows must equal the raw events, and the raw events must be
 * exactly the accepted events, each once.
 */
import { type CheckName, type Finding, toCheckName } from '../../actions/operations/audit/findings.ts';
import { reportOtherProcesses, sampleRunning } from '../../actions/operations/audit/running.ts';
import { sampleRecords } from '../../actions/operations/audit/sample-records.ts';
import { auditSample, type UsageDifference } from '../../actions/operations/audit/usage.ts';
import { formatMs, toMs } from '../../core/foundation/time/instant.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import type { ScheduledJob } from '../job.ts';
import { auditMetrics } from '../metrics.ts';

const DAYS_PER_RUN = 2;
/** Maximum number of logged differences. If one row differs, a million may; the metric counts all of them. */
const LOGGED_MAX = 20;

export function auditSampleJob(stores: Stores, every_seconds: number): ScheduledJob {
  return {
    name: 'audit-sample',
    every_seconds,
    async run(now) {
      const collected = new SampleDifferences();
      const { ranges, records } = await sampleRecords(stores, Math.random, (finding) =>
        collected.add(toCheckName(finding.kind), finding.kind, formatFinding(finding)),
      );
      const report = (finding: Finding) =>
        collected.add(toCheckName(finding.kind), finding.kind, formatFinding(finding));
      await sampleRunning(stores, { chance: Math.random, now }, report);
      await reportOtherProcesses(stores, report);
      const options = { size: DAYS_PER_RUN, chance: Math.random };
      const { days, rows } = await auditSample(stores, options, (difference) =>
        collected.add('usage', difference.meter_id, formatDifference(difference)),
      );
      auditMetrics.sampled({ days, rows, ranges, differences: collected.counts });
      return {
        done: { days, rows, ranges, records, differences: collected.total },
        waiting: [],
        failed: collected.failed(),
      };
    },
  };
}

class SampleDifferences {
  readonly counts = new Map<CheckName, number>();
  readonly #first: { id: string; error: Error }[] = [];

  add(check: CheckName, id: string, text: string): void {
    this.counts.set(check, (this.counts.get(check) ?? 0) + 1);
    if (this.#first.length < LOGGED_MAX) this.#first.push({ id, error: new Error(text) });
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

function formatFinding({ kind, count, what, partition, from_offset, to_offset }: Finding): string {
  const where = partition === undefined ? '' : ` of partition ${partition}`;
  const range = from_offset === undefined ? '' : `, offsets ${from_offset} to ${to_offset}`;
  return `${kind}${where}${range}: ${count}: ${what}; run npm run audit, and see docs/operations.md, "What the audit finds"`;
}

function formatDifference({ size, bucket_start_us, field, stored, expected }: UsageDifference): string {
  const start = formatMs(toMs(bucket_start_us));
  return `the bucket row ${size} ${start} differs in ${field}: ${stored} is stored, the raw events say ${expected}; run npm run audit -- --repair`;
}

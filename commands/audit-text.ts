/** Output of the audit: one line per difference and one per check; with `--json`, each line is one object. */
import { type CheckReport, type Finding, formatEventId, toCheckName } from '../actions/operations/audit/findings.ts';
import type { UsageDifference } from '../actions/operations/audit/usage.ts';
import { formatUs } from '../core/foundation/time/instant.ts';

export type AuditPrinter = {
  finding(finding: Finding): void;
  difference(difference: UsageDifference): void;
  check(report: CheckReport): void;
  /** Prints a line about an action of the audit, as opposed to a finding. */
  note(line: string): void;
};

export const LINES: AuditPrinter = {
  finding: (finding) => printLine(formatFinding(finding)),
  difference: (difference) => printLine(formatUsageDifference(difference)),
  check: (report) => printLine(formatCheck(report)),
  note: printLine,
};

export const JSON_LINES: AuditPrinter = {
  finding: (finding) => printLine(JSON.stringify({ check: toCheckName(finding.kind), ...finding })),
  difference: (difference) => printLine(JSON.stringify({ check: 'usage', kind: 'usage_row_differs', ...difference })),
  check: (report) => printLine(JSON.stringify({ report: report.check, ...report, check: undefined })),
  note: (line) => printLine(JSON.stringify({ note: line })),
};

function formatFinding({ kind, count, what, partition, from_offset, to_offset, first = [] }: Finding): string {
  const where = partition === undefined ? '' : ` partition ${partition}`;
  const range = from_offset === undefined ? '' : ` offsets ${from_offset} to ${to_offset}`;
  const places = first.map(({ offset, position, ...id }) => `\n    ${offset}.${position} ${formatEventId(id)}`);
  return `${kind}${where}${range}: ${count} ${what}${places.join('')}`;
}

function formatUsageDifference(difference: UsageDifference): string {
  const { tenant_id, environment_id, meter_id, meter_version, size, external_customer_id, group_key, field } =
    difference;
  const place = `${tenant_id} ${environment_id} ${meter_id} v${meter_version} ${size} ${formatUs(difference.bucket_start_us)}`;
  const group = group_key === '' ? '' : ` group ${JSON.stringify(group_key)}`;
  return `${place} customer ${JSON.stringify(external_customer_id)}${group}: ${field} is ${difference.stored ?? 'missing'}, should be ${difference.expected ?? 'absent'}`;
}

function formatCheck({ check, counts, differences, skipped }: CheckReport): string {
  if (skipped !== undefined) return `${check}: not looked at, ${skipped}`;
  const listed = Object.entries(counts).map(([what, count]) => `${count} ${what.replaceAll('_', ' ')}`);
  return `${check}: ${listed.join(', ')}: ${differences} differences`;
}

function printLine(line: string): void {
  process.stdout.write(`${line}\n`);
}

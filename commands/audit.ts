/**
 * `npm run audit -- [--check NAME …] [--tenant T] [--environment E] [--meter M] [--from ISO --to ISO] [--json] [--repair] [--stores]`
 *
 * Checks that the stores have every accepted event, or its outcome, exactly once (actions/operations/audit/records.ts). It recounts the bucket rows
 * from the raw events, and prints the differences. `--stores` also reads the files of exports in S3. The exit code is 1 if a difference is
 * left, and 2 if there was nothing to audit. Tenant, meter and range narrow the recount; the records of the log cover all tenants.
 */
import {
  CHECKS,
  type CheckName,
  type Finding,
  spoilsRecount,
  toCheckName,
} from '../actions/operations/audit/findings.ts';
import { auditRecords } from '../actions/operations/audit/records.ts';
import { auditRevenue, rebuildRevenue } from '../actions/operations/audit/revenue.ts';
import {
  auditUsage,
  isRepaired,
  repairUsage,
  type UsageAuditInput,
  type UsageDifference,
} from '../actions/operations/audit/usage.ts';
import { streamRevenue } from '../actions/reporting/revenue/stream-revenue.ts';
import { type Config, readConfig } from '../config.ts';
import { MINUTE_MS } from '../core/foundation/time/durations.ts';
import { parseEventTime } from '../core/foundation/time/instant.ts';
import { identityOptions } from '../pipeline/pipeline.ts';
import { exitWithUsage, parseArguments } from '../process/command-line.ts';
import { loadInstallationId } from '../storage/models/operations/installation.ts';
import { countOpenCorrections, requestCorrectionsAgain } from '../storage/progress/corrections.ts';
import { listMetersToAudit } from '../storage/progress/meter-versions.ts';
import { compareAllIdentityFiles } from './audit-identity-files.ts';
import { findLog, type OpenedStores, openStores } from './audit-stores.ts';
import { type AuditPrinter, JSON_LINES, LINES } from './audit-text.ts';

const REPAIR_WITHIN_MS = 10 * MINUTE_MS;
const PAUSE_MS = 200;

type AuditedMeterFilter = Pick<UsageAuditInput, 'tenant_id' | 'environment_id' | 'meter_id'>;
type AuditArguments = UsageAuditInput & {
  readonly meters: AuditedMeterFilter;
  readonly checks: ReadonlySet<CheckName>;
  readonly repair: boolean;
  /** Whether files of exports in S3 are read. */
  readonly reads_stores: boolean;
  readonly speaker: AuditPrinter;
};

async function main(): Promise<number> {
  const options = parseAuditArguments();
  const config = readConfig();
  const { stores, close } = await openStores(config, options.speaker.note);
  try {
    const matching = await listMetersToAudit(stores.postgres, options.meters);
    if (matching.length === 0 && Object.values(options.meters).some((id) => id !== undefined))
      throw new Error('no meter matches --tenant, --environment and --meter');
    const seen = await checkRecords(config, stores, options);
    const records = await repairCorrections(config, stores, { options, findings: seen });
    const findings = await repairRevenue(stores, options, records);
    const usage = options.checks.has('usage')
      ? await checkUsage(stores, options)
      : { found: [], meters: matching.length };
    if (usage.found.length > 0 && options.repair)
      return await repair(stores, options, { findings, found: usage.found });
    if (findings.length + usage.found.length > 0) return 1;
    if (matching.length > 0 && usage.meters === 0)
      throw new Error('the meters are still being counted: try again later');
    return 0;
  } finally {
    await close();
  }
}

async function checkRecords(
  config: Config,
  stores: OpenedStores['stores'],
  options: AuditArguments,
): Promise<Finding[]> {
  const { dir } = identityOptions(config);
  const findings: Finding[] = [];
  const wanted = {
    checks: options.checks,
    log: await findLog(config, stores),
    identityFiles: async () =>
      dir === null ? [] : compareAllIdentityFiles(stores.clickhouse, dir, await loadInstallationId(stores.postgres)),
    exports: { settings: config, reads_stores: options.reads_stores },
    chance: Math.random,
  };
  const reports = await auditRecords(stores, wanted, (finding) => {
    findings.push(finding);
    options.speaker.finding(finding);
  });
  for (const report of reports) options.speaker.check(report);
  return findings;
}

/**
 * The pipeline applies the accepted corrections again; then all checks run once more. No correction is applied while
 * raw rows are in doubt.
 */
async function repairCorrections(
  config: Config,
  stores: OpenedStores['stores'],
  { options, findings }: { options: AuditArguments; findings: readonly Finding[] },
): Promise<readonly Finding[]> {
  const ids = findings.flatMap(({ correction_id }) => correction_id ?? []);
  const isInDoubt = findings.some(
    (finding) => spoilsRecount(finding) && !CORRECTED.includes(toCheckName(finding.kind)),
  );
  if (!options.repair || ids.length === 0 || isInDoubt) return findings;
  options.speaker.note(`applying ${ids.length} corrections again`);
  await requestCorrectionsAgain(stores.postgres, ids);
  const isDone = async () => (await countOpenCorrections(stores.postgres, ids)) === 0;
  if (!(await isDoneInTime(isDone))) {
    options.speaker.note('the corrections wait for a pipeline: start one, and run the audit again');
    return findings;
  }
  options.speaker.note('applied; audited again');
  return checkRecords(config, stores, options);
}

const CORRECTED: readonly CheckName[] = ['corrections', 'second_count'];

async function isDoneInTime(isDone: () => Promise<boolean>): Promise<boolean> {
  const until = performance.now() + REPAIR_WITHIN_MS;
  while (!(await isDone())) {
    if (performance.now() > until) return false;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  return true;
}

/** Revenue rows depend on Postgres alone, so other differences do not prevent their repair. */
async function repairRevenue(
  stores: OpenedStores['stores'],
  { repair, speaker }: AuditArguments,
  findings: readonly Finding[],
): Promise<readonly Finding[]> {
  const others = findings.filter(({ kind }) => toCheckName(kind) !== 'revenue');
  if (!repair || others.length === findings.length) return findings;
  speaker.note('making the rows of revenue anew');
  await rebuildRevenue(stores);
  await streamRevenue(stores);
  const left: Finding[] = [];
  const counts = await auditRevenue(stores, (finding) => {
    left.push(finding);
    speaker.finding(finding);
  });
  speaker.check({ check: 'revenue', counts, differences: left.length });
  return [...others, ...left];
}

type UsageAuditResult = { readonly found: readonly UsageDifference[]; readonly meters: number };

async function checkUsage(stores: OpenedStores['stores'], options: AuditArguments): Promise<UsageAuditResult> {
  const found: UsageDifference[] = [];
  const { differences, ...counts } = await auditUsage(stores, options, (difference) => {
    found.push(difference);
    options.speaker.difference(difference);
  });
  options.speaker.check({ check: 'usage', counts, differences });
  return { found, meters: counts.meters };
}

type RepairInput = { readonly findings: readonly Finding[]; readonly found: readonly UsageDifference[] };

/** The pipeline rebuilds the rows, in order with its slices; then the bucket rows are audited again. */
async function repair(
  stores: OpenedStores['stores'],
  options: AuditArguments,
  { findings, found }: RepairInput,
): Promise<number> {
  const { note } = options.speaker;
  const spoilt = [...new Set(findings.filter(spoilsRecount).map(({ kind }) => kind))];
  if (spoilt.length > 0) {
    note(
      `nothing is repaired: bucket rows would be made from raw events that are in doubt (${spoilt.join(', ')}). ` +
        'docs/operations.md, "What the audit finds", says what each means and what to do first',
    );
    return 1;
  }
  const ids = await repairUsage(stores, found);
  note(`rebuilding what differs (${ids.length} rebuilds)`);
  if (!(await isDoneInTime(() => isRepaired(stores, ids)))) {
    note('the rebuilds wait for a pipeline: start one, and run the audit again');
    return 1;
  }
  note('rebuilt; audited again');
  const recheck = await checkUsage(stores, options);
  return recheck.found.length + findings.length === 0 ? 0 : 1;
}

function parseAuditArguments(): AuditArguments {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  const values = parseArguments('audit', {
    check: { type: 'string', multiple: true },
    tenant: text,
    environment: text,
    meter: text,
    from: text,
    to: text,
    json: flag,
    repair: flag,
    stores: flag,
  });
  const meters = { tenant_id: values.tenant, environment_id: values.environment, meter_id: values.meter };
  const start_us = parseInstant('--from', values.from);
  const end_us = parseInstant('--to', values.to);
  if (start_us !== undefined && end_us !== undefined && start_us >= end_us)
    exitWithUsage('audit', `--from ${values.from} is not before --to ${values.to}`);
  const repair = values.repair ?? false;
  // A repair requires all checks first.
  const checks = new Set(repair ? CHECKS : parseChecks(values.check));
  const reads_stores = values.stores ?? false;
  const speaker = values.json ? JSON_LINES : LINES;
  return { ...meters, meters, start_us, end_us, checks, repair, reads_stores, speaker };
}

function parseChecks(names: readonly string[] | undefined): readonly CheckName[] {
  if (names === undefined) return CHECKS;
  const unknown = names.find((name) => !(CHECKS as readonly string[]).includes(name));
  if (unknown !== undefined) exitWithUsage('audit', `--check: ${unknown} is none of ${CHECKS.join(', ')}`);
  return names as CheckName[];
}

function parseInstant(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const instant = parseEventTime(/^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00:00Z` : text);
  if (typeof instant === 'string') exitWithUsage('audit', `${option}: ${text} is not a date or an RFC 3339 date-time`);
  return instant;
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`audit: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(2);
  },
);

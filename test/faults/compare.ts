/**
 * What is stored against what was accepted, in sentences: nothing when all is as it should be. Usage is the reference model's
 * affair; here are the raw rows, the identities, the corrections, and whether the audit's own answer agrees.
 */
import { CHECKS } from '../../actions/operations/audit/findings.ts';
import { auditUsage, type UsageDifference } from '../../actions/operations/audit/usage.ts';
import type { ClickHouseClient } from '../../storage/clickhouse/clickhouse.ts';
import type { Stores } from '../../storage/foundation/stores.ts';
import { type ModelEntry, type ModelMeter, type ModelQuestion, usageByModel } from '../support/reference-model.ts';
import { runScript } from '../support/service.ts';

export type LookedAt = Pick<Stores, 'postgres' | 'clickhouse'>;

/** The ids of what was accepted: each has one raw row, whatever corrections say. */
function acceptedIds(entries: Iterable<ModelEntry>): Set<string> {
  const ids = new Set<string>();
  for (const entry of entries) if ('event_id' in entry) ids.add(entry.event_id);
  return ids;
}

/** `prefix`: of all ids, those that begin with it are meant. */
export async function storeDifferences(
  { postgres, clickhouse }: LookedAt,
  { accepted, prefix }: { accepted: Iterable<ModelEntry>; prefix: string },
): Promise<string[]> {
  const ids = acceptedIds(accepted);
  const raw = await idsIn(clickhouse, 'events', prefix);
  return [
    ...idDifferences('raw events', ids, raw),
    ...idDifferences('identities', ids, await idsIn(clickhouse, 'event_identities', prefix)),
    ...(await placeDifferences(clickhouse, prefix)),
    ...(await outcomeDifferences(clickhouse, prefix)),
    ...(await correctionDifferences({ postgres, clickhouse }, prefix)),
  ];
}

type Counted = { event_id: string; copies: string };

function idsIn(clickhouse: ClickHouseClient, table: string, prefix: string): Promise<Counted[]> {
  return rowsOf<Counted>(
    clickhouse,
    `select event_id, count() as copies from ${table} where startsWith(event_id, {prefix:String}) group by event_id`,
    prefix,
  );
}

function idDifferences(what: string, accepted: ReadonlySet<string>, stored: readonly Counted[]): string[] {
  const known = new Set(stored.map(({ event_id }) => event_id));
  const lost = [...accepted].filter((id) => !known.has(id));
  const strange = [...known].filter((id) => !accepted.has(id));
  const doubled = stored.filter(({ copies }) => copies !== '1');
  const said = (some: readonly unknown[], text: string, example: unknown) =>
    some.length > 0 ? [`${what}: ${some.length} of ${accepted.size} ids ${text}, one is ${example}`] : [];
  return [
    ...said(lost, 'are lost', lost[0]),
    ...said(strange, 'were never accepted', strange[0]),
    ...said(doubled, 'are there more than once', doubled[0]?.event_id),
  ];
}

const PLACE = 'tenant_id, environment_id, event_id, timestamp, partition, offset, position';

async function placeDifferences(clickhouse: ClickHouseClient, prefix: string): Promise<string[]> {
  const only = async (one: string, other: string) => {
    const these = (table: string) => `select ${PLACE} from ${table} where startsWith(event_id, {prefix:String})`;
    const rows = await rowsOf<{ event_id: string }>(clickhouse, `${these(one)} except ${these(other)}`, prefix);
    return rows.length === 0
      ? []
      : [`${rows.length} places are in ${one} and not in ${other}, one of ${rows[0]!.event_id}`];
  };
  return [...(await only('events', 'event_identities')), ...(await only('event_identities', 'events'))];
}

/** What became of one that was not stored is told once. */
async function outcomeDifferences(clickhouse: ClickHouseClient, prefix: string): Promise<string[]> {
  const rows = await rowsOf<{ event_id: string }>(
    clickhouse,
    `select event_id, partition, offset, position, count() as copies from event_outcomes
      where startsWith(event_id, {prefix:String}) and outcome != 'unusable'
      group by event_id, partition, offset, position having copies > 1`,
    prefix,
  );
  return rows.length === 0 ? [] : [`${rows.length} outcomes are told twice, one of ${rows[0]!.event_id}`];
}

async function correctionDifferences({ postgres, clickhouse }: LookedAt, prefix: string): Promise<string[]> {
  const { rows: known } = await postgres.raw(
    `select id::text as id, event_id, action, state from event_corrections where starts_with(event_id, ?)`,
    [prefix],
  );
  const stored = await rowsOf<{ sequence: string }>(
    clickhouse,
    `select distinct toString(sequence) as sequence from event_corrections where startsWith(event_id, {prefix:String})`,
    prefix,
  );
  const sequences = new Set(stored.map(({ sequence }) => sequence));
  return known.flatMap(({ id, event_id, action, state }: Record<string, string>) => {
    if (state === 'applied' && !sequences.has(id!)) return [`the ${action} of ${event_id} is applied and not stored`];
    return state === 'applied' ? [] : [`the ${action} of ${event_id} is ${state}`];
  });
}

async function rowsOf<Row>(clickhouse: ClickHouseClient, query: string, prefix: string): Promise<Row[]> {
  const answer = await clickhouse.query({ query, query_params: { prefix }, format: 'JSONEachRow' });
  return answer.json<Row>();
}

type AskUsage = (meter: ModelMeter & { id: string }, question: ModelQuestion) => Promise<string>;

/** What questions answer against the model, customer by customer. */
export async function usageDifferences(
  ask: AskUsage,
  meters: readonly (ModelMeter & { id: string })[],
  { accepted, questions }: { accepted: readonly ModelEntry[]; questions: readonly ModelQuestion[] },
): Promise<string[]> {
  const found: string[] = [];
  for (const meter of meters) {
    for (const question of questions) {
      const answered = await ask(meter, question);
      const { value } = usageByModel(meter, accepted, question);
      const { type } = meter.aggregation;
      const which = `${type} of ${meter.event_name} ${question.customers ?? ''} from ${question.start} to ${question.end}`;
      if (answered !== value) found.push(`usage: ${which} is ${answered}, and should be ${value}`);
    }
  }
  return found;
}

/** Returns the differences that the audit's recount finds in the bucket rows of these meters. */
export async function rowDifferences(stores: LookedAt, meters: readonly { id: string }[]): Promise<string[]> {
  const found: UsageDifference[] = [];
  for (const { id: meter_id } of meters) await auditUsage(stores, { meter_id }, (each) => found.push(each));
  const [first] = found;
  if (!first) return [];
  const { field, stored, expected } = first;
  return [
    `the audit finds ${found.length} bucket rows that differ; of one ${field} is ${stored}, and should be ${expected}`,
  ];
}

/** The checks of the audit that are about everything that was ever accepted, and not about the rows of a meter. */
export const RECORD_CHECKS = CHECKS.filter((check) => check !== 'usage').flatMap((check) => ['--check', check]);

/** `npm run audit` beside the service: `green`, or what it says. */
export async function auditAnswer(settings: Record<string, string>, args: readonly string[] = []): Promise<string> {
  const audit = runScript('audit', [...args], settings);
  const { code } = await audit.ended;
  if (code === 0) return 'green';
  const lines = `${audit.stdout()}${audit.stderr()}`.trim().split('\n');
  return `exit code ${code}: ${lines.slice(-4).join(' | ')}`;
}

/** An audit that is green while something is wrong is wrong itself, and so is one that is not while all is right. */
export function withAudit(differences: readonly string[], audit: string): string[] {
  if (differences.length === 0) return audit === 'green' ? [] : [`all is equal, and the audit says: ${audit}`];
  return [...differences, audit === 'green' ? 'and the audit is green' : `the audit sees something: ${audit}`];
}

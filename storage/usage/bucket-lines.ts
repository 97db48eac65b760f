/**
 * Questions that want the rows of some customers, each by itself, are asked together: what the meters of a subscription, the
 * lines of an invoice, or the requests of one moment want to know is one statement, whatever time each of them asks for. A
 * statement costs the engine more than the rows that it reads, so this is what a busy service spends its time on, or does not.
 *
 * The starts and ends of all that is asked cut time into stretches. The statement answers by stretch, and a question takes the
 * stretches that lie in its own ranges: sums, least and greatest of stretches are those of the whole. Of sets of distinct
 * values the store answers how many there are, which cannot be put together, so these are asked for one by one, once it is known
 * of all of them together which have any rows.
 */
import { TupleParam } from '@clickhouse/client';
import { isInRanges, type SegmentPlan } from '../../core/analytics/segments.ts';
import type { BucketField } from '../../core/metering/bucket.ts';
import { US_BY_ROW_SIZE } from '../../core/metering/bucket-size.ts';
import { type Microseconds, US_PER_SECOND } from '../../core/time/instant.ts';
import { type ClickHouseClient, clickhouseFailure, SMALL_ANSWER, streamedRows } from '../clickhouse/clickhouse.ts';
import { TogetherByKey } from '../together.ts';
import { inTurns, Turns } from '../turns.ts';
import {
  type BucketQuestion,
  type Cell,
  cellOf,
  type Ends,
  endOf,
  HELD,
  type Inside,
  isBeyond,
  NO_CELLS,
  NO_ENDS,
  rangesCondition,
  type StoredCells,
} from './bucket-cells.ts';
import { asSmall, checkCells, type QuestionBounds } from './question.ts';

type BatchedQuestion = { readonly question: BucketQuestion; readonly inside: Inside | undefined };

/** More customers than these, or more windows, are a question of their own: a month of hours goes together. */
const CUSTOMERS_MAX = 10;
const WINDOWS_MAX = 750;
/** Of more windows than these nothing is kept in memory. */
const SEGMENTS_KEPT_MAX = 50;
const QUESTIONS_MAX = 100;
/** Of all parameters of a statement: a server takes 128 KiB of each. */
const PARAMETERS_LENGTH_MAX = 100_000;

const TOGETHER = new TogetherByKey<ClickHouseClient, BatchedQuestion, StoredCells>(answerAll, {
  atOnceMax: QUESTIONS_MAX,
  lengthMax: PARAMETERS_LENGTH_MAX,
  lengthOf: ({ question }) => parametersLength(question),
});

/** Of its cuts, in seconds since 1970 with a comma, and of its lines, with quotation marks, brackets and the version. */
function parametersLength({ meter, external_customer_ids, plan }: BucketQuestion): number {
  const { segments, base_ranges, day_ranges, edge_ranges } = plan;
  const cuts = segments.length + 2 * (base_ranges.length + day_ranges.length + edge_ranges.length);
  const lines = (external_customer_ids ?? []).map((customer) => meter.id.length + customer.length + LINE_AROUND);
  return cuts * CUT_LENGTH + lines.reduce((sum, length) => sum + length, 0);
}
const CUT_LENGTH = 12;
const LINE_AROUND = 20;

/** Whether memory may keep the answer. */
export function isOfLines(question: BucketQuestion): boolean {
  const { plan, meter, bounds } = question;
  if (bounds && (plan.rows_are_windows || meter.group_by !== undefined)) return false;
  return goesTogether(question) && plan.segments.length <= SEGMENTS_KEPT_MAX;
}

export function goesTogether(question: BucketQuestion): boolean {
  return isOfFew(question) && !countsDistinct(question);
}

function countsDistinct({ meter }: BucketQuestion): boolean {
  return meter.aggregation.fills.includes('uniques');
}

function isOfFew({ external_customer_ids, by_customer, plan, extra_uniques, meter, bounds }: BucketQuestion): boolean {
  // Groups, and windows of the meter's own, may be any number: whoever has bounds is counted while they come.
  if (bounds && (meter.group_by !== undefined || (plan.rows_are_windows && rowsMax(meter, plan) > WINDOWS_MAX)))
    return false;
  if (external_customer_ids === null || external_customer_ids.length > CUSTOMERS_MAX) return false;
  if (plan.segments.length > WINDOWS_MAX || extra_uniques.length > 0) return false;
  return by_customer || external_customer_ids.length === 1;
}

function rowsMax({ base_size }: BucketQuestion['meter'], { base_ranges }: SegmentPlan): number {
  return base_ranges.reduce((sum, [start, end]) => sum + (end - start) / US_BY_ROW_SIZE[base_size], 0);
}

const ANY = new TogetherByKey<ClickHouseClient, BucketQuestion, boolean>(haveAny, {
  atOnceMax: QUESTIONS_MAX,
  lengthMax: PARAMETERS_LENGTH_MAX,
  lengthOf: parametersLength,
});

/**
 * Whether there may be rows for it, of a question for distinct values: of the many lines of a customer most have none, and need no
 * statement of their own. Who asks alone is not told, and asks at once.
 */
export async function mayHaveDistinct(clickhouse: ClickHouseClient, question: BucketQuestion): Promise<boolean> {
  const { plan, bounds } = question;
  if (!countsDistinct(question) || !isOfFew(question) || plan.base_ranges.length + plan.day_ranges.length === 0)
    return true;
  const found = await ANY.ask(clickhouse, question, batchKey(question));
  bounds?.signal.throwIfAborted();
  return found;
}

async function haveAny(clickhouse: ClickHouseClient, questions: readonly BucketQuestion[]): Promise<boolean[]> {
  if (questions.length === 1) return [true];
  const { tenant_id, bounds } = questions[0]!;
  const asked = questions.map((question) => ({ question, inside: undefined }));
  const asking = { tenant_id, bounds: boundsOfBatch(bounds) };
  const rows = await asSmall(asking, () => readRows(clickhouse, asked, ['count']));
  return inTurns(bounds?.asker, asked, (one) => cellsFor(one, ['count'], rows).cells.length > 0);
}

/** As `bucketCells` answers. */
export async function cellsOfLines(
  clickhouse: ClickHouseClient,
  question: BucketQuestion,
  inside?: Inside,
): Promise<StoredCells> {
  const { plan, bounds } = question;
  if (plan.base_ranges.length + plan.day_ranges.length === 0) return NO_CELLS;
  const stored = await TOGETHER.ask(clickhouse, { question, inside }, batchKey(question));
  bounds?.signal.throwIfAborted();
  if (bounds) checkCells(stored.cells.length);
  return stored;
}

/** Questions with the same columns differ in meters, customers and times alone. */
function batchKey({ tenant_id, environment_id, meter, plan, bounds }: BucketQuestion): string {
  const columns = [meter.group_by !== undefined, plan.rows_are_windows, meter.aggregation.fills.includes('latest')];
  return JSON.stringify([tenant_id, environment_id, bounds?.asker ?? null, ...columns]);
}

/** Behind these the fields that any of the questions wants. */
type LineRow = [
  meter_id: string,
  meter_version: number,
  customer: string,
  group_key: string,
  size: string,
  stretch_s: string,
  first_us: string,
  last_us: string,
  ...held: unknown[],
];
const LEADING_COLUMNS = 8;

async function answerAll(clickhouse: ClickHouseClient, asked: readonly BatchedQuestion[]): Promise<StoredCells[]> {
  const fields = (Object.keys(HELD) as BucketField[]).filter((field) =>
    asked.some(({ question }) => question.meter.aggregation.fills.includes(field)),
  );
  const { tenant_id, bounds } = asked[0]!.question;
  const asking = { tenant_id, bounds: boundsOfBatch(bounds) };
  const rows = await asSmall(asking, () => readRows(clickhouse, asked, fields));
  return inTurns(bounds?.asker, asked, (one) => cellsFor(one, fields, rows));
}

/** Who has gone leaves the others their answer. */
function boundsOfBatch(bounds: QuestionBounds | undefined): QuestionBounds | undefined {
  return bounds && { asker: bounds.asker, signal: new AbortController().signal, spent: { work: 0 } };
}

async function readRows(
  clickhouse: ClickHouseClient,
  asked: readonly BatchedQuestion[],
  fields: readonly BucketField[],
): Promise<Map<string, LineRow[]>> {
  const found = new Map<string, LineRow[]>();
  const turns = new Turns(asked[0]!.question.bounds?.asker);
  try {
    const rows = streamedRows<LineRow>(clickhouse, {
      query: statementOf(asked, fields),
      query_params: paramsOf(asked),
      settings: { output_format_json_quote_64bit_integers: 1, ...SMALL_ANSWER },
    });
    for await (const some of rows) {
      for (const row of some) {
        const line = lineKey(row[0], row[1], row[2]);
        const known = found.get(line);
        if (known) known.push(row);
        else found.set(line, [row]);
        if (turns.isOver()) await turns.next();
      }
    }
  } catch (error) {
    throw clickhouseFailure('usage buckets', error);
  }
  return found;
}

function lineKey(meter_id: string, meter_version: number, customer: string): string {
  return `${meter_id}/${meter_version}/${customer}`;
}

function statementOf(asked: readonly BatchedQuestion[], fields: readonly BucketField[]): string {
  const { plan, meter } = asked[0]!.question;
  const start = 'toInt64(toUnixTimestamp64Second(bucket_start))';
  const line = ['meter_id', 'meter_version', 'external_customer_id'];
  const grouped = meter.group_by === undefined ? [] : ['group_key'];
  const stretch = plan.rows_are_windows ? start : `roundDown(${start}, {cuts:Array(Int64)})`;
  const ends = asked.some(({ inside }) => inside !== undefined) ? ['min(first_us)', 'max(last_us)'] : ['0', '0'];
  const merged = fields.map((field) => HELD[field].merged);
  const group_key = grouped[0] ?? "''";
  return `select ${[...line, group_key, 'size', `${stretch} as stretch`, ...ends, ...merged].join(', ')} from usage_buckets
    where tenant_id = {tenant_id:String} and environment_id = {environment_id:String} and meter_id in {meter_ids:Array(String)}
      and (meter_id, meter_version, external_customer_id) in {lines:Array(Tuple(String, UInt32, String))}
      and ${rangesCondition(asked.map(({ question }) => question))}
    group by ${[...line, ...grouped, 'size', 'stretch'].join(', ')}`;
}

function paramsOf(asked: readonly BatchedQuestion[]): Record<string, unknown> {
  const { tenant_id, environment_id, plan } = asked[0]!.question;
  const lines = new Map<string, TupleParam>();
  for (const { question } of asked) {
    const { meter, meter_version, external_customer_ids } = question;
    for (const customer of external_customer_ids!)
      lines.set(lineKey(meter.id, meter_version, customer), new TupleParam([meter.id, meter_version, customer]));
  }
  const meter_ids = [...new Set(asked.map(({ question }) => question.meter.id))];
  const cuts = plan.rows_are_windows ? {} : { cuts: cutsOf(asked.map(({ question }) => question.plan)) };
  return { tenant_id, environment_id, meter_ids, lines: [...lines.values()], ...cuts };
}

/** In seconds, because rows begin at whole ones: a row belongs to the last of these before its own start. */
function cutsOf(plans: readonly SegmentPlan[]): number[] {
  const instants = plans.flatMap(({ segments, base_ranges, day_ranges, edge_ranges }) => [
    ...segments.map(({ start_us }) => start_us),
    ...[...base_ranges, ...day_ranges, ...edge_ranges].flat(),
  ]);
  return [...new Set(instants.map((at) => Math.floor(at / US_PER_SECOND)))].toSorted((a, b) => a - b);
}

function cellsFor(
  { question, inside }: BatchedQuestion,
  fields: readonly BucketField[],
  rows: ReadonlyMap<string, LineRow[]>,
): StoredCells {
  const { meter, meter_version, by_customer, plan } = question;
  const cells: Cell[] = [];
  let ends = NO_ENDS;
  let has_later = !question.asks_later;
  const end_us = question.asks_later ? endOf(plan) : Number.POSITIVE_INFINITY;
  for (const customer of new Set(question.external_customer_ids)) {
    for (const row of rows.get(lineKey(meter.id, meter_version, customer)) ?? []) {
      if (row[SIZE] === meter.base_size && startOf(row) >= end_us) has_later = true;
      if (!isAsked(question, row)) continue;
      if (inside) ends = endsWith(ends, question, row);
      const window_s = plan.rows_are_windows ? row[STRETCH] : '0';
      const place = [segmentOf(plan, Number(row[STRETCH])), window_s, row[3], by_customer ? customer : ''] as const;
      cells.push(cellOf(fields, [...place, ...row.slice(LEADING_COLUMNS)]));
    }
  }
  return { cells, beyond: isBeyond(ends, inside ?? ALWAYS), ends, has_later };
}

const ALWAYS: Inside = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];

const SIZE = 4;
const STRETCH = 5;

function isAsked({ meter, plan }: BucketQuestion, row: LineRow): boolean {
  const at = startOf(row);
  return (
    (row[SIZE] === meter.base_size && isInRanges(plan.base_ranges, at)) ||
    (row[SIZE] === 'DAY' && isInRanges(plan.day_ranges, at))
  );
}

function endsWith({ first_us, last_us }: Ends, { meter, plan }: BucketQuestion, row: LineRow): Ends {
  const isEdge = row[SIZE] === meter.base_size && isInRanges(plan.edge_ranges, startOf(row));
  if (!isEdge) return { first_us, last_us };
  return { first_us: Math.min(first_us, Number(row[6])), last_us: Math.max(last_us, Number(row[7])) };
}

function startOf(row: LineRow): Microseconds {
  return Number(row[STRETCH]) * US_PER_SECOND;
}

function segmentOf({ segments }: SegmentPlan, stretch_s: number): string {
  return String(Math.floor((segments[segmentIndex(segments, stretch_s)]?.start_us ?? 0) / US_PER_SECOND));
}

/** The row of a ragged start begins before the first segment, and belongs to it. There may be as many as hours of a month. */
export function segmentIndex(segments: SegmentPlan['segments'], start_s: number): number {
  let [first, behind] = [0, segments.length];
  while (behind - first > 1) {
    const middle = (first + behind) >> 1;
    if (Math.floor(segments[middle]!.start_us / US_PER_SECOND) <= start_s) first = middle;
    else behind = middle;
  }
  return first;
}

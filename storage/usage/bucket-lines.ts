/**
 * Questions that want the rows of some customers, each by itself, are asked together: what the meters of a subscription, the
 * lines of an invoice, or the requests of one moment want to know of the same stretch of time is one statement. A statement costs
 * the engine more than the rows that it reads, so this is what a busy service spends its time on, or does not.
 */
import { TupleParam } from '@clickhouse/client';
import type { BucketField } from '../../core/metering/bucket.ts';
import { type ClickHouseClient, clickhouseFailure, streamedRows } from '../clickhouse/clickhouse.ts';
import { TogetherByKey } from '../together.ts';
import { Turns } from '../turns.ts';
import {
  type BucketQuestion,
  type Cell,
  type CellRow,
  cellOf,
  FEW_ROWS,
  HELD,
  type Inside,
  keysOf,
  rangeCondition,
  timesCondition,
} from './bucket-cells.ts';
import { asSmall, checkCells, type QuestionBounds } from './question.ts';

type BatchedQuestion = { readonly question: BucketQuestion; readonly inside: Inside | undefined };

/** More customers than these, or more windows, are a question of their own. */
const CUSTOMERS_MAX = 20;
const SEGMENTS_MAX = 50;
/** Of one statement, whose parameters a server takes in its address. */
const QUESTIONS_MAX = 50;

const TOGETHER = new TogetherByKey<ClickHouseClient, BatchedQuestion, Cell[] | null>(answerAll, QUESTIONS_MAX);

export function isOfLines(question: BucketQuestion): boolean {
  const { external_customer_ids, by_customer, plan, extra_uniques, meter, bounds } = question;
  // Windows of the meter's own, and groups, may be any number: whoever has bounds is counted while they come.
  if (bounds && (plan.rows_are_windows || meter.group_by !== undefined)) return false;
  if (external_customer_ids === null || external_customer_ids.length > CUSTOMERS_MAX) return false;
  if (plan.segments.length > SEGMENTS_MAX || extra_uniques.length > 0) return false;
  return by_customer || external_customer_ids.length === 1;
}

/** Null where a row of the edges has events that are not inside, or does not know it. */
export async function cellsOfLines(
  clickhouse: ClickHouseClient,
  question: BucketQuestion,
  inside?: Inside,
): Promise<Cell[] | null> {
  const { plan, bounds } = question;
  if (plan.base_ranges.length + plan.day_ranges.length === 0) return [];
  const cells = await TOGETHER.ask(clickhouse, { question, inside }, batchKey(question, inside));
  bounds?.signal.throwIfAborted();
  if (bounds) checkCells(cells?.length ?? 0);
  return cells;
}

/** Questions with the same text differ in meters and customers alone. */
function batchKey({ tenant_id, environment_id, meter, plan, bounds }: BucketQuestion, inside: unknown): string {
  const { segments, rows_are_windows, base_ranges, day_ranges, edge_ranges } = plan;
  const starts = segments.map(({ start_us }) => start_us);
  const ranges = [base_ranges, day_ranges, inside === undefined ? null : edge_ranges];
  const shape = [
    meter.base_size,
    meter.group_by !== undefined,
    rows_are_windows,
    kindOfColumns(meter.aggregation.fills),
  ];
  return JSON.stringify([tenant_id, environment_id, bounds?.asker ?? null, shape, starts, ranges]);
}

/** Columns of numbers cost little where they are not wanted; sets and latest values are read by who wants them. */
const LARGE: readonly BucketField[] = ['uniques', 'latest'];

function kindOfColumns(fills: readonly BucketField[]): string {
  return fills.some((field) => LARGE.includes(field)) ? fills.join() : 'numbers';
}

/** Behind the fields: the meter, and between which instants the events of the edges lie. */
type LineRow = [...CellRow, meter_id: string, meter_version: number, first_us: string, last_us: string];
const TRAILING_COLUMNS = 4;

async function answerAll(clickhouse: ClickHouseClient, asked: readonly BatchedQuestion[]): Promise<(Cell[] | null)[]> {
  const fields = (Object.keys(HELD) as BucketField[]).filter((field) =>
    asked.some(({ question }) => question.meter.aggregation.fills.includes(field)),
  );
  const rows = await asSmall(boundsOfBatch(asked[0]!.question.bounds), () => readRows(clickhouse, asked, fields));
  return asked.map((one) => cellsFor(one, fields, rows));
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
  const { question, inside } = asked[0]!;
  const found = new Map<string, LineRow[]>();
  const turns = new Turns(question.bounds?.asker);
  try {
    const rows = streamedRows<LineRow>(clickhouse, {
      query: statementOf(question, inside, fields),
      query_params: paramsOf(asked),
      settings: { output_format_json_quote_64bit_integers: 1, ...FEW_ROWS },
    });
    for await (const some of rows) {
      for (const row of some) {
        const [meter_id, meter_version] = row.slice(-TRAILING_COLUMNS) as [string, number];
        const line = lineKey(meter_id, meter_version, row[3]);
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

function statementOf(question: BucketQuestion, inside: Inside | undefined, fields: readonly BucketField[]): string {
  const { plan, meter } = question;
  const keys = keysOf({ plan, meter, by_customer: true });
  const edges = plan.edge_ranges.map((range) => rangeCondition(meter.base_size, range)).join(' or ');
  const at = (column: string, otherwise: string) => `if(${edges}, ${column}, ${otherwise})`;
  const ends =
    inside === undefined ? ['0', '0'] : [`min(${at('first_us', MAX_INT64)})`, `max(${at('last_us', MIN_INT64)})`];
  const named = keys.map(({ sql, name }) => `${sql} as ${name}`);
  const merged = fields.map((field) => HELD[field].merged);
  const groups = ['meter_id', 'meter_version', ...keys.filter((key) => !key.is_constant).map(({ name }) => name)];
  return `select ${[...named, ...merged, 'meter_id', 'meter_version', ...ends].join(', ')} from usage_buckets
    where tenant_id = {tenant_id:String} and environment_id = {environment_id:String} and meter_id in {meter_ids:Array(String)}
      and (meter_id, meter_version, external_customer_id) in {lines:Array(Tuple(String, UInt32, String))}
      and ${timesCondition(question)}
    group by ${groups.join(', ')}`;
}

const MAX_INT64 = 'toInt64(9223372036854775807)';
const MIN_INT64 = 'toInt64(-9223372036854775808)';

function paramsOf(asked: readonly BatchedQuestion[]): Record<string, unknown> {
  const { tenant_id, environment_id } = asked[0]!.question;
  const lines = new Map<string, TupleParam>();
  for (const { question } of asked) {
    const { meter, meter_version, external_customer_ids } = question;
    for (const customer of external_customer_ids!)
      lines.set(lineKey(meter.id, meter_version, customer), new TupleParam([meter.id, meter_version, customer]));
  }
  const meter_ids = [...new Set(asked.map(({ question }) => question.meter.id))];
  return { tenant_id, environment_id, meter_ids, lines: [...lines.values()] };
}

function cellsFor(
  { question, inside }: BatchedQuestion,
  fields: readonly BucketField[],
  rows: ReadonlyMap<string, LineRow[]>,
): Cell[] | null {
  const { meter, meter_version, by_customer } = question;
  const cells: Cell[] = [];
  for (const customer of new Set(question.external_customer_ids)) {
    for (const row of rows.get(lineKey(meter.id, meter_version, customer)) ?? []) {
      if (inside && isBeyond(row, inside)) return null;
      const cell = cellOf(fields, row);
      cells.push(by_customer ? cell : { ...cell, customer: '' });
    }
  }
  return cells;
}

function isBeyond(row: LineRow, [start_us, end_us]: Inside): boolean {
  const [first_us, last_us] = row.slice(-2).map(Number) as [number, number];
  return first_us < start_us || last_us >= end_us;
}

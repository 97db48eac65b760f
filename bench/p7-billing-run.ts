/**
 * P7: the billing run at the end of a month, for many subscriptions with usage: drafts, then finalized invoices. Finalization is compared
 * with two others. One is COPY, the fastest way into Postgres, of the rows that it wrote, into tables with the same indexes. The other is
 * finalization of one invoice at a time by the same functions, each in its own transaction. Numbers must have no gap, and memory must be
 * bounded. The target applies to `--subscriptions=20000`.
 */
import { type BillingCaller, makeWorld } from './billing-world.ts';
import { type Service, startService } from './processes.ts';
import { check, claim, fixed, flag, say } from './report.ts';

const [MUST_OF_COPY, MUST_TIMES] = [0.2, 20];
/** Memory by which a run may grow, whatever its size. */
const MEMORY_MUST = 512 * 2 ** 20;
/** The end of January, and the instant at which the finalization delay of its drafts is over. */
const [ENDED, RESTED] = ['2026-02-01T00:00:00.000Z', '2026-02-01T02:00:00.000Z'];

type Ran<Report> = {
  readonly report: Report;
  readonly seconds: number;
  readonly cpu_seconds: number;
  readonly bytes: number;
};
type Drafted = { readonly billed: number; readonly failed: readonly unknown[] };
type Finalized = { readonly finalized: number; readonly failed: readonly unknown[] };

export async function run(): Promise<void> {
  const customers = flag('subscriptions', 500);
  const alone = flag('alone', 20);
  const service = await startService();
  try {
    const empty = await databaseBytes(service);
    const whole = await makeWorld(service, { customers, months: 1, copied: true });
    const opened = await databaseBytes(service);
    const single = await makeWorld(service, { customers: alone, months: 1 });
    const before = service.cpu();
    const drafts = await billing<Drafted>(service, whole, { part: 'drafts', now: ENDED });
    const drafted = service.cpu();
    check(drafts.report.billed === customers, JSON.stringify(drafts.report));
    await markNow(service);
    const marked = service.cpu();
    const final = await billing<Finalized>(service, whole, { part: 'final', now: RESTED });
    const ended = service.cpu();
    check(final.report.finalized === customers, JSON.stringify(final.report));
    await checkNumbers(service, whole, customers);
    const invoiced = await databaseBytes(service);
    const kibibytes = (bytes: number) => fixed(bytes / customers / 1024);
    say(
      `  disk in Postgres, KiB: a customer with a subscription ${kibibytes(opened - empty)}, an invoice ${kibibytes(invoiced - opened)}`,
    );
    const copied = await copyAgain(service, whole);
    await billing(service, single, { part: 'drafts', now: ENDED });
    const one = await billing(service, single, {
      part: 'one by one',
      invoice_ids: await draftsOf(service, single),
      now: RESTED,
    });
    const each = (seconds: number, count = customers) => `${fixed((seconds * 1000) / count, 2)} ms`;
    say(`  ${customers} subscriptions: drafts ${each(drafts.seconds)} each, final ${each(final.seconds)}`);
    const ofPostgres = [drafted.postgres - before.postgres, ended.postgres - marked.postgres] as const;
    say(`  CPU of the drafts: service ${each(drafts.cpu_seconds)}, Postgres ${each(ofPostgres[0])}`);
    say(`  CPU of the final ones: service ${each(final.cpu_seconds)}, Postgres ${each(ofPostgres[1])}`);
    say(
      `  COPY of the ${copied.rows} rows of the second: ${each(copied.seconds)}; one after the other ${each(one.seconds, alone)}`,
    );
    say(
      `  memory: ${fixed(drafts.bytes / 2 ** 20)} MiB more for the drafts, ${fixed(final.bytes / 2 ** 20)} for the others`,
    );
    const ofCopy = copied.seconds / final.seconds;
    const times = one.seconds / alone / (final.seconds / customers);
    claim('P7 of a COPY of the same rows', fixed(ofCopy, 2), `${MUST_OF_COPY}`, ofCopy >= MUST_OF_COPY);
    claim('P7 against one after the other', fixed(times), `${MUST_TIMES}`, times >= MUST_TIMES);
    const most = Math.max(drafts.bytes, final.bytes);
    claim('P7 memory', `${fixed(most / 2 ** 20)} MiB`, `${MEMORY_MUST / 2 ** 20} MiB`, most <= MEMORY_MUST);
  } finally {
    await service.stop();
  }
}

async function billing<Report>(
  service: Service,
  { environment_id }: BillingCaller,
  part: object,
): Promise<Ran<Report>> {
  const owner = `select tenant_id, id as environment_id from environments where id = '${environment_id}'`;
  const [scope] = await sql(service, owner);
  return service.call({ what: 'billing', scope, ...part });
}

function sql<Row>(service: Service, text: string): Promise<Row[]> {
  return service.call({ what: 'postgres', sql: text });
}

async function draftsOf(service: Service, { environment_id }: BillingCaller): Promise<string[]> {
  const open = `environment_id = '${environment_id}' and invoice_status = 'DRAFT'`;
  return (await sql<{ id: string }>(service, `select id from invoices where ${open} order by id`)).map(({ id }) => id);
}

/** Checks the numbers of the month's invoices, which follow those of the opening invoices. */
async function checkNumbers(service: Service, { environment_id }: BillingCaller, customers: number): Promise<void> {
  const [found] = await sql<{ first: string; last: string; count: number }>(
    service,
    `select min(invoice_number) as first, max(invoice_number) as last, count(distinct invoice_number)::int as count
       from invoices where environment_id = '${environment_id}' and finalized_at = '${RESTED}'`,
  );
  const span = Number(found!.last.slice(-5)) - Number(found!.first.slice(-5)) + 1;
  check(span === customers && found!.count === customers, `numbers ${JSON.stringify(found)}`);
}

/** Saves the ids of all system events and audit entries so far, so that the ones of finalization can be found. */
async function databaseBytes(service: Service): Promise<number> {
  const sql = 'select pg_database_size(current_database())::float8 as bytes';
  const [row] = await service.call<{ bytes: number }[]>({ what: 'postgres', sql });
  return row!.bytes;
}

async function markNow(service: Service): Promise<void> {
  await sql(service, 'create table bench_told as select id from system_events union all select id from audit_entries');
}

const WRITTEN: readonly [table: string, rows: string][] = [
  ['invoices', `finalized_at = '${RESTED}'`],
  ['system_events', 'id not in (select id from bench_told)'],
  ['audit_entries', 'id not in (select id from bench_told)'],
];

/** Copies the rows of the run into empty tables with the same indexes, from files that the server reads. */
async function copyAgain(
  service: Service,
  { environment_id }: BillingCaller,
): Promise<{ rows: number; seconds: number }> {
  const [{ directory } = { directory: '' }] = await sql<{ directory: string }>(
    service,
    `select current_setting('data_directory') as directory`,
  );
  const [files, counts]: [[string, string][], number[]] = [[], []];
  for (const [table, rows] of WRITTEN) {
    const [copy, file] = [`bench_${table}`, `${directory}/bench_${table}`];
    const those = `environment_id = '${environment_id}' and ${rows}`;
    await sql(service, `create table ${copy} (like ${table} including all)`);
    await sql(service, `create table ${copy}_rows as select * from ${table} where ${those}`);
    const [{ count } = { count: 0 }] = await sql<{ count: number }>(service, `select count(*)::int from ${copy}_rows`);
    await sql(service, `copy ${copy}_rows to '${file}'`);
    counts.push(count);
    files.push([copy, file]);
  }
  const began = performance.now();
  for (const [copy, file] of files) await sql(service, `copy ${copy} from '${file}'`);
  const seconds = (performance.now() - began) / 1000;
  return { rows: counts.reduce((sum, count) => sum + count, 0), seconds };
}

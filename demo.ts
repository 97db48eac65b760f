/**
 * `npm run demo`: bills real usage through the public API and proves the invoice. With FARTHING_URL and FARTHING_API_KEY it uses a running
 * service, otherwise one of its own, which it stops and removes at the end. `--file usage.csv` bills a file; without it a generator makes
 * data of that shape (`--rows`, `--seed`).
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { readConfig } from './config.ts';
import {
  type Catalogue,
  type DemoMeasure,
  EVENT_NAME,
  MEASURES,
  makeCatalogue,
  makeCustomer,
  makeSubscription,
  NAMES,
} from './demo/catalogue.ts';
import { Client, type DemoFields, RejectedRequestError } from './demo/client.ts';
import { differences, showInvoice, waitForInvoices } from './demo/invoices.ts';
import { expectedInvoices, monthAfter, sumUsage } from './demo/recompute.ts';
import { formatGrouped, formatSeconds, type Hour, renderChart, runStep, startProgress } from './demo/screen.ts';
import { BadUsageFile, generateUsage, readUsage, type UsageFile, type UsageRow } from './demo/usage-file.ts';
import { runYear } from './demo/year.ts';
import { parseArguments } from './process/command-line.ts';
import { makeLogger } from './process/logger.ts';
import { startService } from './service.ts';

const BATCH = 1_000;
const WATERMARK_PATIENCE_MS = 120_000;

/** A disagreement or a request that cannot be served: printed without a stack. */
class DemoFailure extends Error {}

type DemoService = { readonly client: Client; readonly isOurs: boolean; stop(): Promise<void> };
type DemoRange = { readonly start: string; readonly end: string };
type DemoJob = {
  readonly client: Client;
  readonly usage: UsageFile;
  readonly range: DemoRange;
  readonly customer: string;
};

async function main(): Promise<void> {
  const began = performance.now();
  const usage = readInput();
  const range = billedRange(usage, new Date());
  console.log(`${usage.name}: ${formatGrouped(usage.rows.length)} calls, ${range.start} to ${range.end}`);
  const service = await runStep('service', reachService);
  try {
    await bill({ client: service.client, usage, range, customer: `demo-${usage.digest}` }, service.isOurs);
    // The year needs an environment of its own, and a running service has a limited number of them.
    if (service.isOurs) console.log(await runStep('a year', () => runYear(service.client)));
  } finally {
    await service.stop();
  }
  console.log(`all done in ${formatSeconds(performance.now() - began)}`);
}

async function bill(job: DemoJob, isOurs: boolean): Promise<void> {
  const catalogue = await runStep('catalogue', () => prepare(job));
  const events = job.usage.rows.map((row) => toEvent(row, job));
  await runStep('events', () => send(job.client, events, 'sent'));
  await runStep('watermark', () => waitForPipeline(job.client));
  const hours = await runStep('usage', () => showUsage(job, catalogue));
  console.log(renderChart(`${NAMES.context_tokens} by hour`, hours));
  await runStep('re-send', () => resendEvents(job, catalogue, events));
  await runStep('billing', () => billAndCheck(job, catalogue, isOurs));
}

function readInput(): UsageFile {
  const { file, seed, rows } = parseArguments('demo', {
    file: { type: 'string' },
    seed: { type: 'string', default: '1' },
    rows: { type: 'string', default: '10000' },
  });
  if (file === undefined) return generateUsage({ seed: whole(seed, '--seed', 0), rows: whole(rows, '--rows', 1) });
  try {
    return readUsage(basename(file), readFileSync(file, 'utf8'));
  } catch (error) {
    throw error instanceof BadUsageFile ? error : new DemoFailure(`${file}: ${(error as Error).message}`);
  }
}

function whole(text: string, name: string, least: number): number {
  if (!/^\d{1,9}$/.test(text) || Number(text) < least)
    throw new DemoFailure(`${name} must be a whole number from ${least}`);
  return Number(text);
}

/** The whole months of the data. If the last month is not over, the range ends now, because only past time can be billed. */
function billedRange({ rows, name }: UsageFile, now: Date): DemoRange {
  const instants = rows.map(({ timestamp }) => timestamp.slice(0, 19)).sort();
  const start = `${instants[0]!.slice(0, 7)}-01T00:00:00.000Z`;
  const closed = monthAfter(`${instants.at(-1)!}Z`);
  const present = new Date(Math.floor(now.getTime() / 1000) * 1000).toISOString();
  const end = closed < present ? closed : present;
  const late = rows.find(({ timestamp }) => `${timestamp.slice(0, 19)}.000Z` >= end);
  if (late) throw new DemoFailure(`${name}: line ${late.line}: ${late.timestamp} is not over yet`);
  return { start, end };
}

async function reachService(): Promise<{ message: string; result: DemoService }> {
  const { FARTHING_URL: url, FARTHING_API_KEY: key } = process.env;
  if (!url) return startOwn();
  if (!key) throw new DemoFailure('FARTHING_URL is set, but FARTHING_API_KEY is not: set it to a key of that service');
  const client = new Client(url, key);
  await client.get('/users/me').catch((error: unknown) => {
    throw new DemoFailure(`${client.url} cannot be used: ${describeError(error)}. ${adviceFor(error)}`);
  });
  endOnSignals(async () => {});
  return { message: `using ${client.url}`, result: { client, isOurs: false, stop: async () => {} } };
}

function adviceFor(error: unknown): string {
  const isRejected = error instanceof RejectedRequestError && (error.status === 401 || error.status === 403);
  return isRejected
    ? 'Set FARTHING_API_KEY to a key of that service that may write.'
    : 'Start it with npm start, or unset FARTHING_URL to let the demo start one of its own.';
}

let isEnding = false;

function endOnSignals(stop: () => Promise<void>): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      isEnding = true;
      void stop().finally(() => process.exit(128 + constants.signals[signal]));
    });
  }
}

/** A whole service in a temporary directory, removed at the end unless the process is killed with -9. */
async function startOwn(): Promise<{ message: string; result: DemoService }> {
  const dir = mkdtempSync(join(tmpdir(), 'farthing-demo-'));
  const config = readConfig({
    DATA_DIR: dir,
    PORT: '0',
    LOG_LEVEL: 'error',
    BILLING_INTERVAL_SECONDS: '1',
    FINALIZATION_DELAY_SECONDS: '0',
  });
  const starting = startService(config, { logger: makeLogger(config, 'farthing-demo') });
  let stopping: Promise<void> | undefined;
  const stop = () => (stopping ??= stopAndRemove(starting, dir));
  endOnSignals(() => {
    console.log('\nstopping the temporary service …');
    return stop();
  });
  try {
    const { url, api_key } = await starting;
    return {
      message: `started a temporary one at ${url}`,
      result: { client: new Client(url, api_key!), isOurs: true, stop },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function stopAndRemove(starting: ReturnType<typeof startService>, dir: string): Promise<void> {
  const running = await starting.catch(() => null);
  await running?.stop();
  rmSync(dir, { recursive: true, force: true });
}

async function prepare({ client, customer }: DemoJob) {
  const catalogue = await makeCatalogue(client);
  await makeCustomer(client, customer);
  return { message: `3 meters, 3 features, a plan of 4 prices, customer ${customer}`, result: catalogue };
}

/** The id is derived from the file and the line, so a re-sent row is a duplicate. */
function toEvent(row: UsageRow, { usage, customer }: DemoJob): DemoFields {
  return {
    event_id: `${customer}-${row.line}`,
    event_name: EVENT_NAME,
    external_customer_id: customer,
    timestamp: row.timestamp,
    source: usage.name,
    properties: { context_tokens: String(row.context_tokens), generated_tokens: String(row.generated_tokens) },
  };
}

async function send(client: Client, events: readonly DemoFields[], word: string) {
  const began = performance.now();
  const progress = startProgress(events.length, 'events');
  try {
    for (let from = 0; from < events.length; from += BATCH) {
      const batch = events.slice(from, from + BATCH);
      await client.sendEvents(batch);
      progress.advance(batch.length);
    }
  } finally {
    progress.end();
  }
  const rate = Math.round((events.length / (performance.now() - began)) * 1000);
  const batches = Math.ceil(events.length / BATCH);
  const inBatches = batches === 1 ? 'one batch' : `${batches} batches`;
  return {
    message: `${formatGrouped(events.length)} ${word} in ${inBatches}, ${formatGrouped(rate)} a second`,
    result: undefined,
  };
}

/** Waits until every accepted event has been processed. */
async function waitForPipeline(client: Client) {
  const until = performance.now() + WATERMARK_PATIENCE_MS;
  for (;;) {
    const lag = await client.get<{ consumption_lag: number; post_processing_lag: number }>('/events/monitoring');
    if (lag.consumption_lag === 0 && lag.post_processing_lag === 0)
      return { message: 'every event has been processed', result: undefined };
    if (performance.now() > until)
      throw new DemoFailure(`${lag.consumption_lag} events are still waiting to be processed`);
    await pause(50);
  }
}

type DemoUsage = { value: string; event_count: number; results: { window_size: string; value: string }[] | null };

async function loadUsage(
  { client, range, customer }: DemoJob,
  catalogue: Catalogue,
  measure: DemoMeasure,
  window_size?: 'HOUR',
) {
  return client.post<DemoUsage>('/events/usage/meter', {
    meter_id: catalogue.meter_ids[measure],
    external_customer_id: customer,
    start_time: range.start,
    end_time: range.end,
    ...(window_size ? { window_size } : {}),
  });
}

async function showUsage(job: DemoJob, catalogue: Catalogue) {
  const totals = sumUsage(job.usage.rows);
  const answers = await Promise.all(MEASURES.map((measure) => loadUsage(job, catalogue, measure)));
  const wrong = MEASURES.filter((measure, index) => answers[index]!.value !== String(totals[measure]));
  if (wrong.length > 0)
    throw new DemoFailure(
      wrong
        .map(
          (measure) =>
            `${NAMES[measure]}: the service says ${answers[MEASURES.indexOf(measure)]!.value}, the file says ${totals[measure]}`,
        )
        .join('\n'),
    );
  const hours = await checkHours(job, catalogue);
  const sums = MEASURES.map((measure) => `${formatGrouped(totals[measure])} ${NAMES[measure].toLowerCase()}`).join(
    ', ',
  );
  return { message: `${sums}, as in the file`, result: hours };
}

async function checkHours(job: DemoJob, catalogue: Catalogue): Promise<Hour[]> {
  const { results } = await loadUsage(job, catalogue, 'context_tokens', 'HOUR');
  const values = new Map((results ?? []).map(({ window_size, value }) => [Date.parse(window_size), value]));
  const hours = new Map<string, bigint>();
  for (const { timestamp, context_tokens } of job.usage.rows) {
    const start = `${timestamp.slice(0, 13)}:00:00Z`;
    hours.set(start, (hours.get(start) ?? 0n) + context_tokens);
  }
  for (const [start, value] of hours) {
    const answer = values.get(Date.parse(start)) ?? 'nothing';
    if (answer !== String(value))
      throw new DemoFailure(`the hour from ${start}: the service says ${answer}, the file says ${value}`);
  }
  return [...hours].sort(([a], [b]) => (a < b ? -1 : 1)).map(([start, value]) => ({ start, value }));
}

async function resendEvents(job: DemoJob, catalogue: Catalogue, events: readonly DemoFields[]) {
  const { message } = await send(job.client, events, 'sent a second time');
  await waitForPipeline(job.client);
  await showUsage(job, catalogue);
  return { message: `${message}; nothing changed`, result: undefined };
}

/** The subscription comes last, because its months are over: the scheduler bills them as soon as it sees it. */
async function billAndCheck({ client, usage, range, customer }: DemoJob, catalogue: Catalogue, isOurs: boolean) {
  const subscription = await makeSubscription(client, {
    external_customer_id: customer,
    plan_id: catalogue.plan_id,
    start_date: range.start,
    end_date: range.end,
  });
  if (!isOurs) console.log('  waiting for the scheduler, which by default looks every two minutes …');
  const expected = expectedInvoices(usage.rows, subscription.start_date, subscription.end_date);
  const invoices = await waitForInvoices(client, {
    subscription_id: subscription.id,
    count: expected.length,
    patience_ms: isOurs ? 60_000 + expected.length * 1_000 : 300_000,
    finalize: !isOurs,
  });
  for (const invoice of invoices) console.log(showInvoice(invoice, catalogue.sold_by_price));
  const found = differences(invoices, expected, catalogue.sold_by_price);
  if (found.length > 0) throw new DemoFailure(found.join('\n'));
  const lines = expected.reduce((count, invoice) => count + invoice.lines.length, 0);
  return {
    message: `${invoices.length} invoices, ${lines} lines and every total equal the recomputation`,
    result: undefined,
  };
}

function describeError(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error ? `${message} (${cause.message})` : message;
}

main().catch((error: unknown) => {
  if (isEnding) return; // An interrupted step fails; the signal handler ends the process.
  const { stack } = error as { stack?: string };
  const isPlain =
    error instanceof DemoFailure ||
    error instanceof BadUsageFile ||
    error instanceof RejectedRequestError ||
    (error as Error).message === 'fetch failed';
  console.error(isPlain ? `demo: ${describeError(error)}` : (stack ?? String(error)));
  process.exit(1);
});

/**
 * P15: waiting corrections. A log contains 100,000 events, with and without 1,000 corrections between them; half of the corrections concern
 * earlier events, half concern events of this log. The result is the time until everything has taken effect; waiting corrections share one
 * rebuild. A second measurement has sixty corrections that arrive one by one, with single events between them, while the pipeline runs.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { appendEvents } from '../actions/metering/events/append-events.ts';
import { auditUsage } from '../actions/operations/audit/usage.ts';
import { DAY_MS } from '../core/foundation/time/durations.ts';
import { elementSpans } from '../core/metering/event-text.ts';
import { relayControlMessages } from '../pipeline/control/relay.ts';
import { startPipeline } from '../pipeline/pipeline.ts';
import { migrate } from '../sql/migrate.ts';
import { connectClickHouse } from '../storage/clickhouse/clickhouse.ts';
import { startEmbedded } from '../storage/embedded/stack.ts';
import type { Stores } from '../storage/foundation/stores.ts';
import { openEmbeddedLog } from '../storage/log/embedded/embedded.ts';
import { connectPostgres } from '../storage/postgres/pool/postgres.ts';
import { addCorrection } from '../storage/progress/corrections.ts';
import { announceMeterVersion } from '../storage/progress/meter-versions.ts';
import { readProgress } from '../storage/progress/slices.ts';
import { cpuOfTree } from './cpu.ts';
import { check, claim, fixed, flag, median, say } from './report.ts';
import { bulkBodies, meterDefinitions } from './workload.ts';

const MUST = 3;
const SCOPE = { tenant_id: 'tenant', environment_id: 'environment' };
const BODY_EVENTS = 1_000;
const FIRST_DAY = Math.floor(Date.parse('2026-03-01T00:00:00Z') / DAY_MS);

export async function run(): Promise<void> {
  const events = flag('events', 100_000);
  const corrections = flag('corrections', 1_000);
  const runs = flag('runs', 3);
  const dir = mkdtempSync(join(tmpdir(), 'farthing-p15-'));
  const embedded = await startEmbedded({ dir, log: () => {} });
  const stores: Stores = {
    postgres: connectPostgres(embedded.postgres_url),
    clickhouse: connectClickHouse(embedded.clickhouse_url),
    log: undefined as never,
  };
  try {
    await migrate(stores);
    const log = await openEmbeddedLog(stores.postgres, {
      partition_count: 1,
      append_timeout_ms: 30_000,
      linger_ms: 20,
      sole_owner: true,
      directory: join(dir, 'log'),
    });
    const found = await measure({ ...stores, log }, { events, corrections, runs });
    await log.close();
    const [alone, among] = [median(found.map((one) => one.alone)), median(found.map((one) => one.among))];
    const ratio = among / alone;
    const measured = `${fixed(ratio, 2)}: ${fixed(among, 0)} ms against ${fixed(alone, 0)} ms`;
    claim(
      `P15 ${corrections} corrections among ${events} events ÷ the events alone`,
      measured,
      `≤ ${MUST}`,
      ratio <= MUST,
    );
  } finally {
    await stores.postgres.destroy();
    await stores.clickhouse.close();
    await embedded.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

type Wanted = { readonly events: number; readonly corrections: number; readonly runs: number };

async function measure(stores: Stores, { events, corrections, runs }: Wanted) {
  for (const [index, definition] of meterDefinitions().entries()) {
    const id = `meter_${index}`;
    await stores.postgres.transaction((transaction) =>
      announceMeterVersion(transaction, SCOPE, { meter_id: id, version: 1, definition: { ...definition, id } }),
    );
  }
  let seed = 1;
  let known = await send(stores, seed++, events, 0, []);
  await timeUntilDone(stores);
  const found: { alone: number; among: number }[] = [];
  for (let turn = 0; turn < runs; turn++) {
    await send(stores, seed++, events, 0, []);
    const alone = await timeUntilDone(stores);
    known = await send(stores, seed++, events, corrections, known);
    const among = await timeUntilDone(stores);
    found.push({ alone: alone.ms, among: among.ms });
    const cpu = among.cpu_s / alone.cpu_s;
    const { rows } = await stores.postgres.raw(`select max(rebuilds)::int as n from slices`);
    say(`  ${rows[0].n} rebuilds until now`);
    say(
      `  run ${turn + 1}: ${fixed(alone.ms, 0)} ms for the events alone, ${fixed(among.ms, 0)} ms with corrections among them; ` +
        `of CPU ${fixed(alone.cpu_s)} s and ${fixed(among.cpu_s)} s, ratio ${fixed(cpu, 2)}`,
    );
  }
  await measureTrickle(stores, seed, known);
  const { differences, rows } = await auditUsage(stores, {}, () => {});
  check(differences === 0 && rows > 0, `${differences} bucket rows differ from the raw events`);
  const { rows: open } = await stores.postgres.raw(
    `select count(*)::int as n from event_corrections where state <> 'applied'`,
  );
  check(open[0].n === 0, `${open[0].n} corrections were not applied`);
  return found;
}

const TRICKLED = 60;

/** Sends a single event after each correction, while the pipeline processes the earlier ones. */
async function measureTrickle(stores: Stores, seed: number, known: readonly string[]): Promise<void> {
  const rebuilds = async () => (await stores.postgres.raw(`select max(rebuilds)::int as n from slices`)).rows[0].n;
  const before: number = await rebuilds();
  const trickled = await timeUntilDone(stores, () => send(stores, seed, TRICKLED, TRICKLED, known, 1));
  say(
    `  ${TRICKLED} corrections with single events between them: ${fixed(trickled.ms, 0)} ms, ${(await rebuilds()) - before} rebuilds`,
  );
}

/** Appends events to the log; returns the texts of the events. */
async function send(
  stores: Stores,
  seed: number,
  total: number,
  corrections: number,
  known: readonly string[],
  body_events = BODY_EVENTS,
): Promise<string[]> {
  const texts: string[] = [];
  // Each call uses another day, because a correction recounts the days of the corrected events.
  const from_ms = (FIRST_DAY + seed) * DAY_MS;
  const bodies = [...bulkBodies(seed, total, body_events, { from_ms })];
  const each = corrections / bodies.length;
  let asked = 0;
  for (const [index, whole] of bodies.entries()) {
    const body = whole.subarray('{"events":'.length, whole.length - 1);
    const text = body.toString('latin1');
    const incoming = elementSpans(text).map((span) => {
      const event = text.slice(span.start, span.end);
      texts.push(event);
      return { span, event_id: idOf(event) };
    });
    await appendEvents(stores.log, SCOPE, { body, events: incoming, contiguous: true, now: new Date() });
    for (; asked < Math.floor((index + 1) * each); asked++)
      await correct(
        stores,
        asked % 2 === 0 ? known[asked * 7]! : texts[texts.length - 1 - (asked % (body_events / 2))]!,
        asked,
      );
    while ((await relayControlMessages(stores, Date.now())) > 0);
  }
  return texts;
}

function idOf(event: string): string {
  return (JSON.parse(event) as { event_id: string }).event_id;
}

async function correct({ postgres }: Stores, text: string, number: number): Promise<void> {
  await postgres.transaction((transaction) =>
    addCorrection(transaction, SCOPE, {
      event_id: idOf(text),
      action: number % 4 < 2 ? 'void' : 'replace',
      replacement: number % 4 < 2 ? null : text.replace('"status":"ok"', '"status":"corrected"'),
      reason: 'a benchmark',
      requested_by: 'bench',
      requested_at: new Date(),
    }),
  );
}

/** CPU time includes this process and its children, such as the embedded stores. `sendMore` is called while the pipeline runs. */
async function timeUntilDone(
  stores: Stores,
  sendMore?: () => Promise<unknown>,
): Promise<{ readonly ms: number; readonly cpu_s: number }> {
  const began = performance.now();
  const cpu_before_s = cpuOfTree([process.pid]);
  const pipeline = await startPipeline(stores, {
    owner: 'bench',
    slice_events_max: 50_000,
    logger: pino({ level: 'warn' }),
    clock: () => new Date(),
  });
  await sendMore?.();
  const [{ end_offset } = { end_offset: 0n }] = await stores.log.lag();
  while ((await readProgress(stores.postgres)).every(({ next_offset }) => next_offset < end_offset))
    await new Promise((resolve) => setTimeout(resolve, 20));
  const ms = performance.now() - began;
  const cpu_s = cpuOfTree([process.pid]) - cpu_before_s;
  while (await isCountingThePast(stores)) await new Promise((resolve) => setTimeout(resolve, 100));
  await pipeline.stop();
  return { ms, cpu_s };
}

async function isCountingThePast({ postgres }: Stores): Promise<boolean> {
  const { rows } = await postgres.raw(
    `select exists (select from meter_versions where state <> 'live') as is_counting`,
  );
  return rows[0].is_counting;
}

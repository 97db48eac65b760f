/**
 * Chaos: the traffic of a seed goes on while processes are killed and stopped, disks hang and clocks step; at the end every
 * usage answer and every invoice equals the reference model, every bucket row equals the raw events, these are what was
 * accepted and nothing else, and the audit says so.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { auditUsage, type UsageDifference } from '../../actions/operations/audit/usage.ts';
import { requestDailyRollups } from '../../storage/progress/daily-rollups-message.ts';
import { RECORD_CHECKS, storeDifferences, withAudit } from '../faults/compare.ts';
import { type Chance, createChance } from '../support/seeds.ts';
import { isSettled, untilDailyRollups } from '../support/settled.ts';
import { until } from '../support/until.ts';
import { Billing } from './billing.ts';
import { Client } from './client.ts';
import type { Stage } from './stage.ts';
import { CUSTOMERS, Traffic } from './traffic.ts';

export type ChaosReport = {
  readonly seed: number;
  readonly disturbances: readonly string[];
  readonly counts: Traffic['counts'] & Billing['counts'] & { readonly failed: number };
  readonly meters: number;
  readonly rows: number;
  /** Of them, those of days. */
  readonly daily_rollups: number;
  readonly seconds: { readonly chaos: number; readonly settling: number; readonly checking: number };
  /** Nothing when all is as it should be. */
  readonly difference: string | undefined;
};

const SETTLED_WITHIN_MS = 300_000;

/** On a stage that may have seen other seeds. */
export async function chaosOn(
  stage: Stage,
  { seed, minutes }: { seed: number; minutes: number },
): Promise<ChaosReport> {
  const began = performance.now();
  const until_ms = began + minutes * 60_000;
  const isOver = () => performance.now() >= until_ms;
  const client = new Client(stage.ask);
  const traffic = new Traffic(`seed ${seed}`, client, createChance(seed));
  const billing = new Billing(`seed ${seed}`, client, createChance(seed ^ 0xb111));
  const disturbances: string[] = [];
  const trouble = async () => {
    const chance = createChance(seed ^ 0x5eed);
    // A short seed comes to its invoices when its time is over: they are disturbed as well, and then come to an end.
    for (let extra = 0; !isOver() || (!isBilled && extra < 2); extra += isOver() ? 1 : 0) {
      await pause(chance.whole(200, 2_000));
      disturbances.push(await stage.disturb(chance));
    }
  };
  await withoutDailyRollups(stage);
  let isBilled = false;
  const bills = billing.run(traffic.meters, { isOver, customers: CUSTOMERS }).finally(() => {
    isBilled = true;
  });
  await Promise.all([
    traffic.run(isOver),
    bills,
    trouble(),
    askForDailyRollups(stage, createChance(seed ^ 0xda1), isOver),
  ]);
  const sent = performance.now();
  await settle(stage);
  // While meters come and change there are hardly any daily rollups: the answers are to be those of all of them.
  await stage.withStores(({ postgres }) => untilDailyRollups(postgres, FIRST_DAY + DAYS, () => settle(stage)));
  const settled = performance.now();
  const { rows, daily_rollups, difference } = await check(stage, traffic, billing);
  const since = (from: number, to = performance.now()) => Math.round((to - from) / 100) / 10;
  const seconds = { chaos: since(began, sent), settling: since(sent, settled), checking: since(settled) };
  const counts = { ...traffic.counts, ...billing.counts, failed: client.failed };
  return { seed, disturbances, counts, meters: traffic.meters.length, rows, daily_rollups, seconds, difference };
}

const DAY_MS = 86_400_000;
const FIRST_DAY = Date.parse('2026-02-28T00:00:00Z') / DAY_MS;
const DAYS = 15;

/** As before an earlier seed: while nothing is in progress, rows of a day that nobody reads are no rows. */
export function withoutDailyRollups(stage: Stage): Promise<void> {
  return stage.withStores(async ({ postgres }) => {
    await postgres.raw(`update slices set days_before = 0`);
  });
}

/** More and more of the days that the traffic is about. */
async function askForDailyRollups(stage: Stage, chance: Chance, isOver: () => boolean): Promise<void> {
  for (let day = FIRST_DAY; !isOver() && day < FIRST_DAY + DAYS; ) {
    await pause(chance.whole(300, 2_500));
    day += chance.whole(1, 6);
    // Whoever is killed just now is asked the next time.
    await stage.withStores(({ postgres }) => requestDailyRollups(postgres, day)).catch(() => {});
  }
}

/** Everything that was acknowledged has had its effect. */
export async function settle(stage: Pick<Stage, 'ask' | 'withStores'>): Promise<void> {
  const isProcessed = async () => {
    const answer = await stage.ask('GET', '/events/monitoring').catch(() => undefined);
    return answer?.status === 200 && answer.body.consumption_lag === 0;
  };
  // It answers: then its stores can be reached as well.
  const isDone = async () =>
    (await isProcessed()) && stage.withStores(({ postgres }) => isSettled(postgres, isProcessed));
  await until('everything has had its effect', isDone, SETTLED_WITHIN_MS);
}

type Checked = { rows: number; daily_rollups: number; difference: string | undefined };

async function check(stage: Stage, traffic: Traffic, billing: Billing): Promise<Checked> {
  const answers = traffic.firstDifference();
  const invoices = billing.firstDifference(traffic.accepted).catch(async (error: Error) => {
    throw new Error(`${error.message}; ${await jobsOf(stage)}`, { cause: error });
  });
  const stored = stage.withStores((stores) => checkStores(stores, traffic));
  const [answer, invoice, { difference, ...counts }] = await Promise.all([answers, invoices, stored]);
  const own = answer ?? invoice ?? difference ?? (await stage.withStores(numberDifference));
  const [told] = withAudit(own === undefined ? [] : [own], await stage.audit(RECORD_CHECKS)).slice(-1);
  return { ...counts, difference: own === undefined ? told : `${own}; ${told}` };
}

/** What waits in the queue, and who has it: why something was not done in time. */
async function jobsOf(stage: Stage): Promise<string> {
  const jobs = await stage.withStores(({ postgres }) =>
    postgres('graphile_worker.jobs').select(
      'task_identifier',
      'attempts',
      'run_at',
      'locked_at',
      'locked_by',
      'last_error',
    ),
  );
  const now = await stage.withStores(({ postgres }) => postgres.raw('select now()::text as now'));
  return `at ${now.rows[0].now} in the queue: ${JSON.stringify(jobs)}`;
}

type LookedAt = Parameters<Parameters<Stage['withStores']>[0]>[0];

async function checkStores(stores: LookedAt, traffic: Traffic): Promise<Checked> {
  const found: UsageDifference[] = [];
  let rows = 0;
  for (const { id: meter_id } of traffic.meters)
    rows += (await auditUsage(stores, { meter_id }, (each) => found.push(each))).rows;
  const stored = await storeDifferences(stores, { accepted: traffic.accepted, prefix: `${traffic.name}-` });
  const row =
    found[0] && `a bucket row differs from the raw events: ${JSON.stringify(found[0])} (${found.length} in all)`;
  const difference = row ?? (stored.length > 0 ? stored.join('; ') : undefined);
  return { rows, daily_rollups: await countDailyRollups(stores, traffic.meters), difference };
}

export async function countDailyRollups({ clickhouse }: LookedAt, meters: readonly { id: string }[]): Promise<number> {
  const answer = await clickhouse.query({
    query: `select count() as n from usage_buckets final where size = 'DAY' and meter_id in {meters:Array(String)}`,
    query_params: { meters: meters.map(({ id }) => id) },
    format: 'JSONEachRow',
  });
  return Number((await answer.json<{ n: string }>())[0]!.n);
}

/**
 * Numbers of final invoices are distinct and without a gap, whatever was killed while they were given
 * (docs/rules/invoices.md, "Numbers").
 */
async function numberDifference({ postgres }: LookedAt): Promise<string | undefined> {
  const { rows } = await postgres.raw(
    `select tenant_id, environment_id, left(invoice_number, -6) as token, count(distinct invoice_number) as numbers,
            max(right(invoice_number, 5)::int) as last from invoices where invoice_number is not null
      group by tenant_id, environment_id, token having count(distinct invoice_number) <> max(right(invoice_number, 5)::int)`,
  );
  return rows[0] && `numbers of invoices have a gap: ${JSON.stringify(rows[0])}`;
}

/** What a disturbance was, without its details. */
export function kindOf(disturbance: string): string {
  return disturbance.split(/ for | of |, |: /)[0]!;
}

export function lineOf({
  seed,
  counts,
  meters,
  rows,
  daily_rollups,
  disturbances,
  seconds,
  difference,
}: ChaosReport): string {
  const kinds = new Map<string, number>();
  for (const text of disturbances) {
    const kind = kindOf(text);
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  }
  const troubles = [...kinds].map(([kind, times]) => `${times} × ${kind}`).join(', ');
  const sent = `${counts.events} events, ${counts.singly} singly, ${counts.again} sent again, ${counts.late} late, ${counts.old} old, ${counts.failed} requests failed`;
  const bills = `${counts.invoices} invoices of ${counts.lines} lines, computed ${counts.computed} times on the way`;
  const changes = `${meters} meters, ${counts.changed} changes, ${counts.voided} voided, ${counts.replaced} replaced`;
  const time = `${seconds.chaos} s, settled in ${seconds.settling} s, checked in ${seconds.checking} s`;
  return `seed ${seed}: ${difference ? 'DIFFERS' : 'equal'}; ${sent}; ${changes}; ${bills}; ${rows} rows, ${daily_rollups} of days; ${troubles}; ${time}`;
}

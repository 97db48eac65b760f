/**
 * Chaos: the traffic of a seed goes on while processes are killed and stopped; at the end every usage answer equals the
 * reference model, and every usage row equals the raw events.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { auditUsage, type Difference } from '../../actions/audit-usage.ts';
import { chanceOf } from '../support/seeds.ts';
import { until } from '../support/until.ts';
import { embeddedStage, type Stage } from './stage.ts';
import { Traffic } from './traffic.ts';

export type ChaosReport = {
  readonly seed: number;
  readonly disturbances: readonly string[];
  readonly counts: Traffic['counts'];
  readonly meters: number;
  readonly rows: number;
  readonly seconds: { readonly chaos: number; readonly settling: number; readonly checking: number };
  /** Nothing when all is as it should be. */
  readonly difference: string | undefined;
};

const SETTLED_WITHIN_MS = 180_000;

export async function runChaos(
  asked: { seed: number; minutes: number },
  openStage: () => Promise<Stage> = embeddedStage,
): Promise<ChaosReport> {
  const stage = await openStage();
  try {
    return await chaosOn(stage, asked);
  } finally {
    await stage.stop();
  }
}

/** On a stage that may have seen other seeds. */
export async function chaosOn(
  stage: Stage,
  { seed, minutes }: { seed: number; minutes: number },
): Promise<ChaosReport> {
  const began = performance.now();
  const until_ms = began + minutes * 60_000;
  const isOver = () => performance.now() >= until_ms;
  const traffic = new Traffic(`seed ${seed}`, stage.ask, chanceOf(seed));
  const disturbances: string[] = [];
  const trouble = async () => {
    const chance = chanceOf(seed ^ 0x5eed);
    while (!isOver()) {
      await pause(chance.whole(200, 2_000));
      disturbances.push(await stage.disturb(chance));
    }
  };
  await Promise.all([traffic.run(isOver), trouble()]);
  const sent = performance.now();
  await settle(stage);
  const settled = performance.now();
  const { rows, difference } = await check(stage, traffic);
  const since = (from: number, to = performance.now()) => Math.round((to - from) / 100) / 10;
  const seconds = { chaos: since(began, sent), settling: since(sent, settled), checking: since(settled) };
  return { seed, disturbances, counts: traffic.counts, meters: traffic.meters.length, rows, seconds, difference };
}

/** Everything that was acknowledged has had its effect. */
async function settle(stage: Stage): Promise<void> {
  await until(
    'everything has had its effect',
    async () => {
      const answer = await stage.ask('GET', '/events/monitoring').catch(() => undefined);
      if (answer?.status !== 200 || answer.body.consumption_lag !== 0) return false;
      return stage.withStores(async ({ postgres }) => {
        const { rows } = await postgres.raw(
          `select (select count(*) from log_outbox) + (select count(*) from slices where phase <> 'idle' or gate is not null)
                + (select count(*) from meter_versions where state in ('announced', 'backfilling'))
                + (select count(*) from event_corrections where state = 'requested')
                + (select count(*) from bucket_rebuilds where done_at is null) as open`,
        );
        return rows[0].open === '0';
      });
    },
    SETTLED_WITHIN_MS,
  );
}

async function check(stage: Stage, traffic: Traffic): Promise<{ rows: number; difference: string | undefined }> {
  const answer = await traffic.firstDifference();
  const found: Difference[] = [];
  let rows = 0;
  for (const { id: meter_id } of traffic.meters) {
    const report = await stage.withStores((stores) => auditUsage(stores, { meter_id }, (each) => found.push(each)));
    rows += report.rows;
  }
  const twice = await stage.withStores(async ({ clickhouse }) => {
    const query =
      'select event_id, count() as copies from events group by tenant_id, environment_id, event_id having copies > 1 limit 1';
    return (await clickhouse.query({ query, format: 'JSONEachRow' })).json();
  });
  const row =
    found[0] && `a usage row differs from the raw events: ${JSON.stringify(found[0])} (${found.length} in all)`;
  const copy = twice.length > 0 ? `an event is stored twice: ${JSON.stringify(twice[0])}` : undefined;
  return { rows, difference: answer ?? row ?? copy };
}

export function lineOf({ seed, counts, meters, rows, disturbances, seconds, difference }: ChaosReport): string {
  const kinds = new Map<string, number>();
  for (const text of disturbances) {
    const kind = text.replace(/ for \d+ ms$/, '');
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  }
  const troubles = [...kinds].map(([kind, times]) => `${times} × ${kind}`).join(', ');
  const sent = `${counts.events} events, ${counts.again} sent again, ${counts.late} late, ${counts.failed} requests failed`;
  const changes = `${meters} meters, ${counts.changed} changes, ${counts.voided} voided, ${counts.replaced} replaced`;
  const time = `${seconds.chaos} s, settled in ${seconds.settling} s, checked in ${seconds.checking} s`;
  return `seed ${seed}: ${difference ? 'DIFFERS' : 'equal'}; ${sent}; ${changes}; ${rows} rows; ${troubles}; ${time}`;
}

/** The service on stores that others run, over ways on which statements get lost, are late, or come twice, and that break. */
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { auditAnswer } from '../faults/compare.ts';
import { type Fate, isWrite, type StatementWay, statementsTo } from '../faults/statements.ts';
import { SupervisedService } from '../faults/supervised.ts';
import { type Cut, cutTo } from '../support/cut.ts';
import type { Chance } from '../support/seeds.ts';
import { signalTo, temporaryDirectory } from '../support/service.ts';
import { freshDatabase } from '../support/stores.ts';
import { until } from '../support/until.ts';
import { type Disturbance, drawn, PIPELINE_SETTINGS, type Stage } from './stage.ts';

const FATES: readonly Fate[] = ['lost', 'answer lost', 'late', 'held', 'answer held', 'twice', 'again late'];
const MET_WITHIN_MS = 4_000;

export async function waysStage(): Promise<Stage> {
  const directory = temporaryDirectory();
  const database = await freshDatabase();
  const statements = await statementsTo(database.clickhouse_url);
  const clickhouse = await wayTo(statements.url);
  const postgres = await wayTo(database.postgres_url);
  const service = new SupervisedService({
    DATA_DIR: join(directory.path, 'data'),
    DATABASE_URL: postgres.url,
    CLICKHOUSE_URL: clickhouse.url,
    BOOTSTRAP_API_KEY: 'sk_test_chaos',
    LOG_PARTITIONS: '3',
    ...PIPELINE_SETTINGS,
  });
  await service.current();
  const disturbances: Disturbance[] = [
    { weight: 8, play: (chance) => someStatements(statements, chance) },
    { weight: 3, play: (chance) => killAtStatement(service, statements, chance) },
    {
      weight: 2,
      play: async () => {
        await service.kill('main');
        return 'kill -9 main';
      },
    },
    {
      weight: 2,
      play: async (chance) => {
        const ms = chance.whole(50, 8_000);
        await service.freeze('main', ms);
        return `SIGSTOP main for ${ms} ms`;
      },
    },
    { weight: 2, play: (chance) => outage({ Postgres: postgres.way, ClickHouse: clickhouse.way }, chance) },
  ];
  const settings = { DATA_DIR: join(directory.path, 'data'), DATABASE_URL: database.postgres_url };
  return {
    ask: (method, path, body) => service.ask(method, path, body),
    disturb: (chance) => drawn(disturbances, chance).play(chance),
    withStores: (look) => look(database),
    audit: (args) => auditAnswer({ ...settings, CLICKHOUSE_URL: database.clickhouse_url }, args),
    stop: async () => {
      postgres.way.goOn();
      clickhouse.way.goOn();
      await service.stop();
      await Promise.all([postgres.way.close(), clickhouse.way.close()]);
      await statements.close();
      await database.close();
      directory.remove();
    },
  };
}

async function wayTo(store: string): Promise<{ way: Cut; url: string }> {
  const url = new URL(store);
  const way = await cutTo({ host: url.hostname, port: Number(url.port) });
  url.host = `127.0.0.1:${way.port}`;
  url.searchParams.delete('host');
  return { way, url: url.href };
}

/** For a while one write in some meets a fate; what waits is released at the end, or later than what came in its place. */
export async function someStatements(way: StatementWay, chance: Chance): Promise<string> {
  const fate = chance.pick(FATES);
  const share = chance.pick([0.1, 0.3, 1]);
  const ms = chance.whole(200, 2_500);
  let met = 0;
  way.meet((statement) => {
    if (!isWrite(statement) || chance.next() >= share) return undefined;
    met++;
    return fate;
  });
  await pause(ms);
  way.meet(undefined);
  await pause(chance.whole(0, 1_500));
  await way.release();
  return `statements ${fate} for ${ms} ms: ${met}`;
}

async function killAtStatement(service: SupervisedService, way: StatementWay, chance: Chance): Promise<string> {
  const pid = await service.pidOf('main');
  const { starts } = service;
  const fate = chance.pick(['lost', 'answer lost', 'late', 'again late'] as const);
  let pass = chance.whole(0, 6);
  let met = false;
  way.meet((statement) => {
    if (met || !isWrite(statement) || pass-- > 0) return undefined;
    met = true;
    if (fate === 'answer lost' || fate === 'again late')
      setTimeout(() => signalTo(pid, 'SIGKILL'), chance.whole(0, 30));
    else signalTo(pid, 'SIGKILL');
    return fate;
  });
  await until('a write is met', async () => met, MET_WITHIN_MS).catch(() => {});
  way.meet(undefined);
  if (!met) return 'nothing came to it: service killed at a statement';
  await until('the service is started again', async () => service.starts > starts, 60_000);
  await service.current();
  await pause(chance.whole(0, 1_000));
  await way.release();
  return `service killed at a statement of fate ${fate}`;
}

export async function outage(ways: Readonly<Record<string, Cut>>, chance: Chance): Promise<string> {
  const name = chance.pick(Object.keys(ways));
  const way = ways[name]!;
  const ms = chance.whole(50, 4_000);
  if (chance.next() < 0.5) {
    await way.cut();
    await pause(ms);
    await way.restore();
    return `cut ${name} for ${ms} ms`;
  }
  way.hang();
  await pause(ms);
  way.goOn();
  return `hang ${name} for ${ms} ms`;
}

/**
 * kill -9 of the service at a chosen statement: just before a store hears it, or when the store has done it and the service has
 * not heard. And a second time, at the first statement after that. What was accepted takes effect once.
 */
import { join } from 'node:path';
import { expect } from 'chai';
import { type Cut, cutTo } from '../support/cut.ts';
import { signalTo, temporaryDirectory } from '../support/service.ts';
import { type FreshDatabase, freshDatabase } from '../support/stores.ts';
import { until } from '../support/until.ts';
import { isWrite, type StatementWay, statementsTo } from './statements.ts';
import { SupervisedService } from './supervised.ts';
import { openWorld, type World } from './world.ts';

type Moment = 'before' | 'after';
type Place = { kind: string; act(world: World): Promise<void> };

const PLACES: Place[] = [
  { kind: 'insert into events', act: (world) => world.send(30, { singly: true }) },
  { kind: 'insert into usage_buckets', act: (world) => world.send(30) },
  { kind: 'insert into usage_buckets', act: (world) => world.makeMeter({ type: 'MAX', field: 'n' }) },
  { kind: 'insert into event_corrections', act: (world) => world.void(world.ids[0]!) },
  { kind: 'delete usage_buckets', act: (world) => world.replace(world.ids[1]!) },
];

describe('the service is killed at a statement', function () {
  this.timeout(300_000);
  const directory = temporaryDirectory();
  let database: FreshDatabase;
  let toClickHouse: StatementWay;
  let toPostgres: Cut;
  let service: SupervisedService;

  before(async () => {
    database = await freshDatabase();
    toClickHouse = await statementsTo(database.clickhouse_url);
    const postgres = new URL(database.postgres_url);
    toPostgres = await cutTo({ host: postgres.hostname, port: Number(postgres.port) });
    postgres.host = `127.0.0.1:${toPostgres.port}`;
    postgres.searchParams.delete('host');
    service = new SupervisedService({
      DATA_DIR: join(directory.path, 'data'),
      DATABASE_URL: postgres.href,
      CLICKHOUSE_URL: toClickHouse.url,
      BOOTSTRAP_API_KEY: 'sk_test_faults',
      LOG_PARTITIONS: '2',
      SLICE_WAIT_MS: '20',
    });
    await service.current();
  });
  after(async () => {
    toClickHouse.meet(undefined);
    toPostgres.watch(undefined);
    await service.stop();
    await toClickHouse.close();
    await toPostgres.close();
    await database.close();
    directory.remove();
  });

  const killAt = async (wanted: string | undefined, moment: Moment): Promise<void> => {
    const pid = await service.pidOf('main');
    let met = false;
    toClickHouse.meet((statement) => {
      if (met || !(wanted === undefined ? isWrite(statement) : statement.kind === wanted)) return undefined;
      met = true;
      if (moment === 'before') signalTo(pid, 'SIGKILL');
      // The answer comes when the store has done it, and nobody is there to hear it.
      else setImmediate(() => signalTo(pid, 'SIGSTOP'));
      return moment === 'before' ? 'lost' : 'answer held';
    });
    await until(`${wanted ?? 'a write'} is met`, async () => met);
    if (moment === 'before') return;
    await until('the store has done it', async () => toClickHouse.waiting > 0);
    signalTo(pid, 'SIGKILL');
    await toClickHouse.release();
  };
  /** When Postgres hears of the end of a slice, and never answers it. */
  const killAtProgress = async (): Promise<void> => {
    const pid = await service.pidOf('main');
    let met = false;
    toPostgres.watch({
      sent: (text) => {
        if (met || !/update slices[^]*next_offset = /.test(text)) return;
        met = true;
        signalTo(pid, 'SIGKILL');
      },
    });
    await until('the end of a slice is met', async () => met);
    toPostgres.watch(undefined);
  };

  for (const moment of ['before', 'after'] as const) {
    for (const [index, { kind, act }] of PLACES.entries()) {
      it(`${moment} ${kind} (${index + 1}), and again`, async () => {
        const world = await openWorld(service, `${moment} ${index}`);
        const { starts } = service;
        const killed = killAt(kind, moment);
        await Promise.all([act(world), killed]);
        await until('it is started again', async () => service.starts > starts);
        await service.current();
        const other = moment === 'before' ? 'after' : 'before';
        const again = index % 2 === 0 ? killAt(undefined, other) : killAtProgress();
        await Promise.all([world.send(5), again]);
        toClickHouse.meet(undefined);
        await until('it is started a second time', async () => service.starts > starts + 1);
        await world.settled();
        expect(await world.differences()).to.deep.equal([]);
      });
    }
  }
});

/** API, pipeline and scheduler as processes of their own, on Kafka: how they start, end, die, and what happens when a part is away. */
import { expect } from 'chai';
import { VERSION } from '../../process/version.ts';
import { ruleNamed } from '../ops/rules.ts';
import { type Cluster, type ClusterProcess, type Role, startCluster } from '../support/cluster.ts';
import { startKafka, type TestKafka } from '../support/kafka/broker.ts';
import { evaluate, parseSamples } from '../support/promql.ts';
import { until } from '../support/until.ts';

const ROLES = ['api', 'pipeline', 'scheduler'] as const;

describe('processes on Kafka', function () {
  this.timeout(120_000);
  let kafka: TestKafka;
  let cluster: Cluster;

  before(async () => {
    kafka = await startKafka({ brokers: 1 });
    cluster = await startCluster({
      kafka,
      apis: 2,
      pipelines: 2,
      schedulers: 1,
      settings: { LOG_APPEND_TIMEOUT_MS: '1500' },
    });
  });
  after(async () => {
    await cluster?.stop();
    await kafka?.wipe();
  });

  let ids = 0;
  const events = (count: number) =>
    Array.from({ length: count }, () => ({
      event_id: `e${++ids}`,
      event_name: 'call',
      external_customer_id: 'acme',
      timestamp: '2026-03-10T10:20:00Z',
      properties: { tokens: 1 },
    }));
  const ingest = (count: number, api = 0) =>
    cluster.request('POST', '/events/bulk', { body: { events: events(count) }, api });
  const stored = async () => {
    const answer = await cluster.database.clickhouse.query({
      query: 'select count() as n from events',
      format: 'JSONEachRow',
    });
    return Number((await answer.json<{ n: string }>())[0]!.n);
  };
  const owners = async (): Promise<Map<number, string>> => {
    const { rows } = await cluster.database.postgres.raw('select partition, owner from slices order by partition');
    return new Map(rows.map((row: { partition: number; owner: string }) => [row.partition, row.owner]));
  };
  const ownedBy = async ({ pid }: ClusterProcess) =>
    [...(await owners())].filter(([, owner]) => owner.endsWith(`:${pid}`)).map(([partition]) => partition);

  it('each answers for its health, its readiness and its metrics', async () => {
    for (const role of ROLES) {
      for (const each of cluster.processes(role)) {
        expect((await each.get('/health')).body).to.deep.equal({ status: 'ok', version: VERSION });
        const ready = await each.get('/ready');
        expect(ready.status, JSON.stringify(ready.body)).to.equal(200);
        expect(ready.body.parts).to.deep.equal({ postgres: 'ok', clickhouse: 'ok', log: 'ok' });
        const metrics = (await each.get('/metrics')).body as unknown as string;
        expect(metrics).to.match(/^farthing_log_up 1$/m);
        expect(metrics).to.match(/^farthing_log_unprocessed_records\{partition="11"\} 0$/m);
        expect(metrics).to.match(/^process_cpu_seconds_total/m);
      }
    }
  });

  it('each says what it is, and an alert tells of a role without a process', async () => {
    const all = ROLES.flatMap((role) => cluster.processes(role).map((each) => ({ role, each })));
    const scraped = await Promise.all(
      all.map(async ({ role, each }) => ({
        role,
        samples: parseSamples((await each.get('/metrics')).body as unknown as string),
      })),
    );
    for (const { role, samples } of scraped)
      expect(samples.filter(({ name }) => name === 'farthing_process_role').map(({ labels }) => labels)).to.deep.equal([
        { role },
      ]);
    const firing = (missing?: Role) => {
      const samples = scraped.filter(({ role }) => role !== missing).flatMap((one) => one.samples);
      return ['FarthingApiMissing', 'FarthingRoleMissing'].flatMap((rule) =>
        evaluate(ruleNamed(rule), [{ at_seconds: 0, samples }]),
      );
    };
    expect(firing()).to.deep.equal([]);
    for (const role of ROLES) expect(firing(role)).to.deep.equal([{ labels: { role }, value: 1 }]);
  });

  it('take events at each API and share the partitions of the log', async () => {
    expect((await ingest(300, 0)).status).to.equal(202);
    expect((await ingest(300, 1)).status).to.equal(202);
    await cluster.waitForPipeline();
    expect(await stored()).to.equal(600);
    const shares = await Promise.all(cluster.processes('pipeline').map(ownedBy));
    expect(shares.map((share) => share.length)).to.deep.equal([6, 6]);
  });

  it('a worker that gets SIGTERM finishes and leaves at once', async () => {
    const [leaving] = cluster.processes('pipeline');
    const theirs = await ownedBy(leaving!);
    await ingest(200);
    const began = performance.now();
    expect(await leaving!.kill('SIGTERM'), leaving!.output()).to.equal(0);
    expect(leaving!.output()).to.match(/received SIGTERM[^]*has finished what it had in hand, and ends/);
    expect((await ingest(200)).status).to.equal(202);
    await cluster.waitForPipeline();
    expect(performance.now() - began, 'nobody waits for a session to end').to.be.below(9_000);
    expect(await stored()).to.equal(1000);
    const now = await owners();
    expect(
      theirs.every((partition) => now.get(partition)!.endsWith(`:${cluster.process('pipeline', 1).pid}`)),
    ).to.equal(true);
    await cluster.restart(leaving!);
    await until(
      'the new worker has its share',
      async () => (await ownedBy(cluster.process('pipeline', 0))).length === 6,
    );
  });

  it('a worker that dies is taken over within 15 s', async () => {
    const [dying, living] = cluster.processes('pipeline');
    const theirs = await ownedBy(dying!);
    expect(theirs.length).to.equal(6);
    await dying!.kill('SIGKILL');
    const began = performance.now();
    await ingest(300);
    await until('all partitions are with the one who lives', async () => (await ownedBy(living!)).length === 12);
    expect(performance.now() - began).to.be.below(15_000);
    await cluster.waitForPipeline();
    expect(await stored()).to.equal(1300);
    await cluster.restart(dying!);
    await until(
      'the new worker has its share',
      async () => (await ownedBy(cluster.process('pipeline', 0))).length === 6,
    );
  });

  it('a job of a scheduler that dies is done by another within 15 s', async () => {
    const { postgres } = cluster.database;
    await cluster.add('scheduler');
    const job = async () => {
      const { rows } = await postgres.raw(
        `select worker.pid from graphile_worker.jobs as job left join job_workers as worker on worker.id = job.locked_by
          where job.key = 'the test'`,
      );
      return rows as { pid: number | null }[];
    };
    // It waits in the middle of its work for as long as we hold the table.
    const holding = await postgres.transaction();
    await holding.raw('lock table subscriptions in access exclusive mode');
    const far = Date.UTC(2100, 0) / 1000;
    await postgres.raw(
      `select graphile_worker.add_job('bill-due-periods', json_build_object('slot', ?::bigint), job_key := 'the test')`,
      [far],
    );
    const pid = await until('somebody has it', async () => (await job())[0]?.pid);
    const dying = cluster.processes('scheduler').find((each) => each.pid === pid)!;
    await dying.kill('SIGKILL');
    const began = performance.now();
    await holding.rollback();
    await until('the other has done it', async () => (await job()).length === 0);
    expect(performance.now() - began).to.be.within(1_000, 15_000);
    await cluster.restart(dying);
    // Two schedulers of seven lanes with four connections each: with six each they took what others needed.
    const { rows } = await postgres.raw(
      `select count(*)::integer as jobs from pg_stat_activity
        where application_name = 'farthing jobs' and datname = current_database()`,
    );
    expect(rows[0].jobs).to.be.within(2 * 7, 2 * 7 * 4);
  });

  it('a worker that was frozen for longer than its session writes nothing when it wakes, and joins again', async () => {
    const [frozen, living] = cluster.processes('pipeline');
    await ingest(500);
    frozen!.signal('SIGSTOP');
    await ingest(500);
    await until('all partitions are with the one who lives', async () => (await ownedBy(living!)).length === 12);
    frozen!.signal('SIGCONT');
    await ingest(500);
    await until('the one who woke has a share again', async () => (await ownedBy(frozen!)).length === 6);
    await cluster.waitForPipeline();
    expect(await stored()).to.equal(2800);
  });

  it('an API that gets SIGTERM answers what it has taken', async () => {
    const leaving = cluster.process('api', 1);
    const answers = Promise.all(
      Array.from({ length: 20 }, () =>
        ingest(10, 1).then(
          ({ status }) => status,
          () => 'refused',
        ),
      ),
    );
    await new Promise((resolve) => setImmediate(resolve));
    const code = leaving.kill('SIGTERM');
    const statuses = await answers;
    expect(await code, leaving.output()).to.equal(0);
    await cluster.waitForPipeline();
    expect(await stored()).to.equal(2800 + 10 * statuses.filter((status) => status === 202).length);
    await cluster.restart(leaving);
  });

  it('Kafka away: 503 with Retry-After within the bound, not ready; back: all goes on, and what was sent again counts once', async () => {
    const before = await stored();
    await kafka.kill();
    const batch = { events: events(100) };
    const began = performance.now();
    const refused = await cluster.request('POST', '/events/bulk', { body: batch });
    expect(refused.status).to.equal(503);
    expect(refused.body.code).to.equal('service_unavailable');
    expect(Number(refused.headers.get('retry-after'))).to.be.above(0);
    expect(performance.now() - began).to.be.within(1_000, 4_000);
    const ready = await cluster.process('pipeline', 0).get('/ready');
    expect(ready.status).to.equal(503);
    expect((ready.body.parts as Record<string, string>).log).to.equal('away');
    await kafka.restart();
    await until(
      'the same batch is taken',
      async () => (await cluster.request('POST', '/events/bulk', { body: batch })).status === 202,
    );
    await cluster.waitForPipeline();
    expect(await stored()).to.equal(before + 100);
  });

  it('ClickHouse away: ingestion goes on, the pipeline waits and catches up', async () => {
    const before = await stored();
    await cluster.clickhouseWay.cut();
    for (let round = 0; round < 5; round++) expect((await ingest(100, round % 2)).status).to.equal(202);
    await until(
      'the pipeline is not ready',
      async () => (await cluster.process('pipeline', 0).get('/ready')).status === 503,
    );
    const lag = await cluster.log.lag();
    expect(lag.reduce((sum, { unprocessed_records }) => sum + unprocessed_records, 0)).to.be.above(0);
    await cluster.clickhouseWay.restore();
    await cluster.waitForPipeline();
    expect(await stored()).to.equal(before + 500);
  });

  it('Postgres away: what was taken before is processed when it is back', async () => {
    const before = await stored();
    expect((await ingest(100)).status).to.equal(202);
    await cluster.postgresWay.cut();
    const statuses = [];
    for (let round = 0; round < 3; round++) statuses.push((await ingest(100)).status);
    await cluster.postgresWay.restore();
    await cluster.waitForPipeline();
    const taken = statuses.filter((status) => status === 202).length;
    expect(await stored()).to.equal(before + 100 + 100 * taken);
    // A key that the API has seen a moment ago is known without Postgres.
    expect(statuses).to.deep.equal([202, 202, 202]);
    await until('it is ready again', async () => (await cluster.process('pipeline', 0).get('/ready')).status === 200);
  });
});

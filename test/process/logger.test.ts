/** The log and the traces of several processes. Each line of the log is one JSON object of the same shape. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect } from 'chai';
import { VERSION } from '../../process/version.ts';
import { type Cluster, type Role, startCluster } from '../support/cluster.ts';
import { type Collector, startCollector, treeOf } from '../support/collector.ts';
import { until } from '../support/until.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const CALLER = '00f067aa0ba902b7';

type Line = Record<string, unknown> & { level: string; msg?: string };

describe('the log of the processes', function () {
  this.timeout(120_000);
  let cluster: Cluster;
  let collector: Collector;
  before(async () => {
    collector = await startCollector();
    const settings = {
      LOG_LEVEL: 'trace',
      BILLING_INTERVAL_SECONDS: '1',
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    };
    cluster = await startCluster({ partitions: 1, schedulers: 1, settings });
  });
  after(async () => {
    await cluster.stop();
    await collector.stop();
  });

  const said = (role: Role): Line[] =>
    cluster
      .process(role, 0)
      .output()
      .split('\n')
      .slice(0, -1) // The last may not be whole yet.
      .map((line) => JSON.parse(line));
  const hasSaid = (role: Role, what: string) =>
    until(`${role} says: ${what}`, async () => said(role).find(({ msg }) => msg?.includes(what)));

  it('has the level by its name, the instant, the service and its version in every line, when a store is lost as well', async () => {
    await cluster.request('POST', '/events', { body: { event_name: 'call', external_customer_id: 'acme' } });
    await cluster.waitForPipeline();
    await cluster.postgresWay.cut();
    await hasSaid('scheduler', 'could not be put into the queue');
    await cluster.postgresWay.restore();
    for (const role of ['api', 'pipeline', 'scheduler'] as const) {
      await hasSaid(role, `farthing ${role} is ready at http://`);
      for (const line of said(role)) {
        expect(line.level).to.be.oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal']);
        expect(line.time).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
        expect(line).to.include({ service: `farthing-${role}`, version: VERSION });
      }
    }
  });

  it('has whose request it was, and its id once', async () => {
    await fetch(`${cluster.process('api', 0).url}/v1/meters/none?secret=1`, {
      headers: { 'x-api-key': 'farthing-test-key', 'x-request-id': 'asked-1' },
    });
    const line = await until('the line of the request', async () =>
      said('api').find((each) => each.request_id === 'asked-1'),
    );
    expect(line).to.include({ method: 'GET', path: '/v1/meters/none', route: '/meters/:id', http_status: 400 });
    expect(line.tenant_id).to.match(/^tenant_/);
    expect(line.environment_id).to.match(/^env_/);
    expect(JSON.stringify(line).split('asked-1')).to.have.length(2);
  });

  it('has what a library prints to the console', () => {
    const logger = join(import.meta.dirname, '..', '..', 'process', 'logger.ts');
    const program = `const { makeAnnouncer } = await import('${logger}'); makeAnnouncer('farthing-x'); console.trace('%s is lost', 'it');`;
    const { stdout, stderr } = spawnSync(
      process.execPath,
      ['--import', './process/typescript.mjs', '--input-type=module', '-e', program],
      {
        encoding: 'utf8',
      },
    );
    expect(JSON.parse(stdout)).to.include({ level: 'error', service: 'farthing-x', msg: 'it is lost' });
    expect(stderr).to.equal('');
  });

  it('traces: a worker continues what an API began, and each has its name', async () => {
    await fetch(`${cluster.process('api', 0).url}/v1/events`, {
      method: 'POST',
      headers: {
        'x-api-key': 'farthing-test-key',
        'content-type': 'application/json',
        traceparent: `00-${TRACE}-${CALLER}-01`,
      },
      body: JSON.stringify({ event_name: 'call', external_customer_id: 'acme' }),
    });
    await cluster.waitForPipeline();
    // A process sends its last spans before it ends.
    for (const role of ['api', 'pipeline'] as const)
      expect(await cluster.process(role, 0).kill('SIGTERM'), role).to.equal(0);
    const spans = collector.spans.filter(({ trace_id }) => trace_id === TRACE);
    expect(treeOf(spans, CALLER)).to.include('POST /events > log.append > slice > slice.write_raw_rows');
    const findService = (name: string) => spans.find((span) => span.name === name)?.resource['service.name'];
    expect([findService('log.append'), findService('slice')]).to.deep.equal(['farthing-api', 'farthing-pipeline']);
  });
});

// Metrics as the exporter of OpenTelemetry sends them: docs/rules/opentelemetry.md.

import { gzipSync } from 'node:zlib';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http';
import { AggregationTemporality, MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { expect } from 'chai';
import { OTLP_EXAMPLE } from '../../../api/metering/events/schema.ts';
import { startWorld, type World } from '../../support/world.ts';

describe('metrics of OpenTelemetry', () => {
  let world: World;
  before(async () => {
    // The exporter's clock is the machine's.
    world = await startWorld({ now: new Date().toISOString() });
    await world.meter('tokens', { type: 'SUM', field: 'value' });
    await world.waitForPipeline();
  });
  after(() => world.stop());

  async function usageOf(customer: string): Promise<string> {
    await world.waitForPipeline();
    const now = Date.now();
    const body = {
      event_name: 'tokens',
      external_customer_id: customer,
      property_name: 'value',
      aggregation_type: 'SUM',
      start_time: new Date(now - 86_400_000).toISOString(),
      end_time: new Date(now + 86_400_000).toISOString(),
    };
    return (await world.post('/events/usage', body)).value;
  }

  function startMeasuring(temporalityPreference: AggregationTemporality) {
    const exporter = new OTLPMetricExporter({
      url: `${world.api.url}/v1/otlp/v1/metrics`,
      headers: { 'x-api-key': world.api.key },
      temporalityPreference,
    });
    const answers: { code: number; error?: Error }[] = [];
    const send = exporter.export.bind(exporter);
    exporter.export = (metrics, done) =>
      send(metrics, (result) => {
        answers.push(result);
        done(result);
      });
    const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
    const provider = new MeterProvider({ readers: [reader] });
    return { provider, answers, meter: provider.getMeter('test') };
  }

  it('counters and histograms of a process, export after export', async () => {
    const { provider, answers, meter } = startMeasuring(AggregationTemporality.DELTA);
    const counter = meter.createCounter('tokens');
    const histogram = meter.createHistogram('requests');
    counter.add(10, { external_customer_id: 'acme', model: 'small' });
    counter.add(2, { external_customer_id: 'acme', model: 'large' });
    counter.add(7, { external_customer_id: 'initech' });
    histogram.record(1.5, { external_customer_id: 'acme' });
    await provider.forceFlush();
    counter.add(5, { external_customer_id: 'acme', model: 'small' });
    await provider.forceFlush();
    await provider.shutdown();
    expect(answers.map(({ code }) => code)).to.deep.equal([0, 0, 0].slice(0, answers.length));
    expect(await usageOf('acme')).to.equal('17');
    expect(await usageOf('initech')).to.equal('7');
  });

  it('cumulative ones are refused, and nothing is counted', async () => {
    const { provider, answers, meter } = startMeasuring(AggregationTemporality.CUMULATIVE);
    meter.createCounter('tokens').add(3, { external_customer_id: 'cumulative' });
    await provider.forceFlush().catch(() => {});
    expect(answers[0]!.code).to.equal(1);
    await provider.shutdown().catch(() => {});
    expect(await usageOf('cumulative')).to.equal('0');
  });

  type Fields = Record<string, unknown>;
  const point = (customer: string | undefined, change: Fields = {}) => ({
    attributes: customer === undefined ? [] : [{ key: 'external_customer_id', value: { stringValue: customer } }],
    startTimeUnixNano: `${Date.now() - 60_000}000000`,
    timeUnixNano: `${Date.now()}000000`,
    asInt: '4',
    ...change,
  });
  const request = (dataPoints: object[], change: Fields = {}) => ({
    resourceMetrics: [
      {
        scopeMetrics: [
          {
            metrics: [{ name: 'tokens', sum: { aggregationTemporality: 1, isMonotonic: true, dataPoints, ...change } }],
          },
        ],
      },
    ],
  });
  const send = (body: unknown, options: object = {}) =>
    world.api.request('POST', '/otlp/v1/metrics', { body, ...options });

  it('200: the same request again counts once', async () => {
    const body = request([point('twice')]);
    for (const _ of [1, 2]) {
      const answer = await send(body);
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.body).to.deep.equal({ partialSuccess: null });
    }
    expect(await usageOf('twice')).to.equal('4');
  });

  it('200: more points than one append takes', async () => {
    const nano = `${Date.now()}`;
    const points = Array.from({ length: 2_500 }, (_, i) =>
      point('many', { timeUnixNano: `${nano}${`${i}`.padStart(6, '0')}` }),
    );
    expect((await send(request(points))).status).to.equal(200);
    expect(await usageOf('many')).to.equal('10000');
  });

  it('200: what is not taken is counted and named', async () => {
    const { status, body } = await send(request([point('partly'), point(undefined), point('x'.repeat(1025))]));
    expect(status).to.equal(200);
    expect(body.partialSuccess!.rejectedDataPoints).to.equal('2');
    expect(body.partialSuccess!.errorMessage).to.equal(
      'tokens: the attribute external_customer_id is required; tokens: external_customer_id must not be longer than 1024 characters',
    );
    expect(await usageOf('partly')).to.equal('4');
  });

  it('200: a request without metrics', async () => {
    expect((await send({})).body).to.deep.equal({ partialSuccess: null });
  });

  it('400: nothing of it is usage, and the first is named', async () => {
    const { status, body } = await send(request([point('level')], { aggregationTemporality: 2 }));
    expect(status).to.equal(400);
    expect(body.details!.field).to.equal('resourceMetrics');
    expect(body.message).to.match(/^resourceMetrics: tokens: aggregationTemporality must be delta/);
  });

  it('400: keys of another spelling would hold usage that nobody misses', async () => {
    const { resourceMetrics } = request([point('snake')]);
    const [{ scopeMetrics }] = resourceMetrics as [{ scopeMetrics: object[] }];
    const top = await send({ resource_metrics: resourceMetrics });
    expect([top.status, top.body.message]).to.deep.equal([
      400,
      'resource_metrics: is no key of this request; did you mean resourceMetrics?',
    ]);
    const inner = await send({ resourceMetrics: [{ scope_metrics: scopeMetrics }] });
    expect([inner.status, inner.body.message]).to.deep.equal([
      400,
      'resourceMetrics[0].scope_metrics: must be spelt scopeMetrics',
    ]);
    expect(await usageOf('snake')).to.equal('0');
  });

  it('400: a metric of no known kind, with its name', async () => {
    const metrics = [{ name: 'x', Sum: { dataPoints: [point('unknown')] } }];
    const { status, body } = await send({ resourceMetrics: [{ scopeMetrics: [{ metrics }] }] });
    expect([status, body.message]).to.deep.equal([
      400,
      'resourceMetrics: x: Sum is no kind of metric: only sum and histogram are taken',
    ]);
  });

  it('200: two scopes, and two resources, that differ in attributes alone are two', async () => {
    const [{ scopeMetrics }] = request([point('shards')]).resourceMetrics as [
      { scopeMetrics: [{ metrics: object[] }] },
    ];
    const { metrics } = scopeMetrics[0];
    const scope = (shard: string) => ({ name: 'lib', attributes: [{ key: 'shard', value: { stringValue: shard } }] });
    const resource = (arg: string) => ({
      attributes: [{ key: 'process.command_args', value: { arrayValue: { values: [{ stringValue: arg }] } } }],
    });
    const body = {
      resourceMetrics: [
        {
          scopeMetrics: [
            { scope: scope('a'), metrics },
            { scope: scope('b'), metrics },
          ],
        },
        { resource: resource('1'), scopeMetrics: [{ metrics }] },
        { resource: resource('2'), scopeMetrics: [{ metrics }] },
      ],
    };
    for (const _ of [1, 2]) expect((await send(body)).body).to.deep.equal({ partialSuccess: null });
    expect(await usageOf('shards')).to.equal('16');
  });

  it('400, 413: what is small where it is packed, and much where it is not, is refused at once', async () => {
    const packed = (text: string) =>
      send(gzipSync(text), { headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' } });
    const metric = request([point('much')]).resourceMetrics as [{ scopeMetrics: object[] }];
    const attributes = Array.from({ length: 20_000 }, (_, n) => ({ key: `a${n}`, value: { stringValue: 'y' } }));
    const { scopeMetrics } = metric[0];
    const wide = { resource: { attributes }, scopeMetrics: Array(2_000).fill(scopeMetrics[0]) };
    const answers = [
      await packed(JSON.stringify({ resourceMetrics: [wide] })),
      await packed(`{"resourceMetrics":[${'{},'.repeat(2_000_000)}{}]}`),
      await packed(`{"resourceMetrics":[${'{},'.repeat(9_000_000)}{}]}`),
    ];
    expect(answers.map(({ status }) => status)).to.deep.equal([400, 400, 413]);
    expect(answers[0]!.body.details!.field).to.equal('resourceMetrics');
    expect(await usageOf('much')).to.equal('0');
  });

  it('400: no OTLP, no JSON', async () => {
    const odd = await send({ resourceMetrics: [{ scopeMetrics: [{ metrics: [{ sum: { dataPoints: 5 } }] }] }] });
    expect(odd.status).to.equal(400);
    expect(odd.body.details!.field).to.equal('resourceMetrics[0].scopeMetrics[0].metrics[0].sum.dataPoints');
    const protobuf = await send('\x0a\x00', { headers: { 'content-type': 'application/x-protobuf' } });
    expect(protobuf.status).to.equal(400);
    expect(protobuf.body.message).to.match(/must be JSON/);
  });

  it('403 without event:write', async () => {
    expect((await send(OTLP_EXAMPLE, { key: await world.api.keyWithRoles(['metrics_reader']) })).status).to.equal(403);
  });
});

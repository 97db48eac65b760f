// Metrics as the exporter of OpenTelemetry sends them: docs/rules/opentelemetry.md.

import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http';
import { ProtobufMetricsSerializer } from '@opentelemetry/otlp-transformer';
import {
  AggregationTemporality,
  MeterProvider,
  MetricReader,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { expect } from 'chai';
import { OTLP_EXAMPLE } from '../../../api/metering/events/schema.ts';
import { FarthingError } from '../../../core/foundation/error.ts';
import { hasOutboxEvents } from '../../../storage/progress/event-outbox.ts';
import { purgeSeries } from '../../../storage/progress/otlp-series.ts';
import { until } from '../../support/until.ts';
import { startWorld, type World } from '../../support/world.ts';

/** The clock of this SDK has milliseconds, and a first point of no length counts nothing. */
async function nextMillisecond(): Promise<void> {
  const began = Date.now();
  await until('the clock moves on', async () => Date.now() > began + 1);
}

/** Collects when it is asked. */
class Reader extends MetricReader {
  protected override async onForceFlush() {}
  protected override async onShutdown() {}
}

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

  it('cumulative counters, export after export, and after a restart', async () => {
    for (const values of [
      [3, 4, 0],
      [0.5, 1],
    ]) {
      const { provider, answers, meter } = startMeasuring(AggregationTemporality.CUMULATIVE);
      const counter = meter.createCounter('tokens');
      for (const value of values) {
        counter.add(value, { external_customer_id: 'cumulative' });
        await nextMillisecond();
        await provider.forceFlush();
      }
      await provider.shutdown();
      expect(new Set(answers.map(({ code }) => code))).to.deep.equal(new Set([0]));
    }
    expect(await usageOf('cumulative')).to.equal('8.5');
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

  for (const aggregationTemporality of [1, 2])
    it(`200: a point whose event exceeds a mebibyte is refused, with temporality ${aggregationTemporality}`, async () => {
      const customer = `long-${aggregationTemporality}`;
      const attribute = (length: number) => ({ key: 'text', value: { stringValue: '\u0001'.repeat(length) } });
      const long = (length: number) => {
        const one = point(customer);
        return { ...one, attributes: [...one.attributes, attribute(length)] };
      };
      const { status, body } = await send(request([point(customer), long(180_000)], { aggregationTemporality }));
      expect([status, body.partialSuccess?.errorMessage]).to.deep.equal([
        200,
        'tokens: a point must not be longer than 1048576 bytes',
      ]);
      expect(await usageOf(customer)).to.equal('4');
    });

  it('200: a request without metrics', async () => {
    expect((await send({})).body).to.deep.equal({ partialSuccess: null });
  });

  it('400: nothing of it is usage, and the first is named', async () => {
    const { status, body } = await send(request([point('level')], { aggregationTemporality: 0 }));
    expect(status).to.equal(400);
    expect(body.details!.field).to.equal('resourceMetrics');
    expect(body.message).to.match(/^resourceMetrics: tokens: aggregationTemporality must be delta or cumulative/);
  });

  describe('with cumulative temporality', () => {
    const START = BigInt(Date.now() - 600_000) * 1_000_000n;
    const at = (customer: string, seconds: number, value: number, start = START) =>
      point(customer, {
        startTimeUnixNano: `${start}`,
        timeUnixNano: `${START + BigInt(seconds) * 1_000_000_000n}`,
        asInt: `${value}`,
      });
    const sendPoints = (...points: object[]) => send(request(points, { aggregationTemporality: 2 }));

    it('counts each value once: repeated, late, equal, and several in a request', async () => {
      expect((await sendPoints(at('steps', 10, 5))).body).to.deep.equal({ partialSuccess: null });
      await sendPoints(at('steps', 10, 5));
      await sendPoints(at('steps', 30, 9), at('steps', 20, 7));
      await sendPoints(at('steps', 15, 6));
      await sendPoints(at('steps', 40, 9));
      await sendPoints(at('steps', 50, 12));
      expect(await usageOf('steps')).to.equal('12');
    });

    it('a later start is another series, and both may send', async () => {
      const later = START + 1_000n;
      await sendPoints(at('two', 10, 5), at('two', 10, 100, later));
      await sendPoints(at('two', 20, 101, later), at('two', 20, 6));
      expect(await usageOf('two')).to.equal('107');
    });

    it('a first point of no length has what came before, and counts nothing', async () => {
      await sendPoints(at('base', 0, 1_000));
      await sendPoints(at('base', 10, 1_004));
      expect(await usageOf('base')).to.equal('4');
    });

    it('refuses by name a value that fell, and a series that began long ago', async () => {
      await sendPoints(at('fell', 10, 5));
      const fell = await sendPoints(at('fell', 20, 4));
      expect(fell.status).to.equal(400);
      expect(fell.body.message).to.match(/tokens: fell, and its startTimeUnixNano is the same/);
      const old = await sendPoints(at('old', 10, 5, START - 91n * 86_400_000_000_000n), at('fell', 30, 6));
      expect(old.status).to.equal(200);
      expect(old.body.partialSuccess!.errorMessage).to.match(/^tokens: began more than 90 days ago/);
      expect([await usageOf('fell'), await usageOf('old')]).to.deep.equal(['6', '0']);
    });

    it('counts once whatever requests come at one time', async () => {
      const sent = Array.from({ length: 40 }, (_, n) =>
        sendPoints(at('race', (n % 20) + 1, (n % 20) + 1), at('race-2', 21 - (n % 20), 1_000)),
      );
      for (const { status } of await Promise.all(sent)) expect(status).to.equal(200);
      expect([await usageOf('race'), await usageOf('race-2')]).to.deep.equal(['20', '1000']);
    });

    it('counts once where the log fails after the values are stored', async () => {
      const { log } = world.api.services;
      const append = log.append.bind(log);
      log.append = () => Promise.reject(new FarthingError('service_unavailable', 'the log is away'));
      try {
        expect((await sendPoints(at('away', 10, 5))).status).to.equal(503);
      } finally {
        log.append = append;
      }
      expect((await sendPoints(at('away', 10, 5))).status, 'the repeated request').to.equal(200);
      expect((await sendPoints(at('away', 20, 7))).status).to.equal(200);
      await until('the outbox is empty', async () => !(await hasOutboxEvents(world.api.services.postgres)));
      expect(await usageOf('away')).to.equal('7');
    });

    it('sets aside events that the log refuses for good, and moves the others', async () => {
      const { log, postgres } = world.api.services;
      const append = log.append.bind(log);
      log.append = (entries) =>
        Promise.reject(
          entries[0]!.body.includes('refused')
            ? new FarthingError('validation_error', 'a record of the event log holds 8388608 bytes at most')
            : new FarthingError('service_unavailable', 'the log is away'),
        );
      try {
        expect((await sendPoints(at('refused', 10, 5))).status).to.equal(400);
        expect((await sendPoints(at('behind', 10, 5))).status).to.equal(503);
        const failed = () => postgres('event_outbox').whereNotNull('failed_at');
        await until('the entry is set aside', async () => (await failed()).length === 1);
      } finally {
        log.append = append;
      }
      await until('the others are moved', async () => !(await hasOutboxEvents(postgres)));
      expect([await usageOf('behind'), await usageOf('refused')]).to.deep.equal(['5', '0']);
      const operations = readFileSync(new URL('../../../docs/operations.md', import.meta.url), 'utf8');
      const [sendSingly] = /with refused as [^;]+/.exec(operations)!;
      await postgres.raw(sendSingly);
      await until('the refused are moved', async () => !(await hasOutboxEvents(postgres)));
      expect([await usageOf('behind'), await usageOf('refused')]).to.deep.equal(['5', '5']);
    });

    it('after a restore only replaces the value once, because the log may have later usage', async () => {
      await sendPoints(at('restored', 10, 5));
      await world.api.services.postgres('otlp_series').update({ rebase: true });
      await sendPoints(at('restored', 20, 9));
      await sendPoints(at('restored', 30, 11));
      expect(await usageOf('restored')).to.equal('7');
    });

    it('keeps idle series, and deletes those that ended', async () => {
      const { postgres } = world.api.services;
      const DAY_MS = 86_400_000;
      await sendPoints(at('idle', 10, 5));
      await postgres('otlp_series').update({ seen_at: new Date(Date.now() - 2 * DAY_MS) });
      await sendPoints(at('idle', 20, 5));
      await purgeSeries(postgres, new Date(Date.now() + 99 * DAY_MS));
      await sendPoints(at('idle', 30, 6));
      expect(await usageOf('idle')).to.equal('6');
      const { rows } = await postgres.raw('select count(*)::int as count from otlp_series');
      expect(rows[0].count).to.equal(1);
    });
  });

  it('200: protobuf, as exporters send it, with faults in protobuf', async () => {
    const post = (body: Uint8Array) =>
      fetch(`${world.api.url}/v1/otlp/v1/metrics`, {
        method: 'POST',
        headers: { 'x-api-key': world.api.key, 'content-type': 'application/x-protobuf' },
        body: Buffer.from(body),
      });
    const reader = new Reader();
    const provider = new MeterProvider({ readers: [reader] });
    const counter = provider.getMeter('test').createCounter('tokens');
    for (const value of [10, 2.5]) {
      counter.add(value, { external_customer_id: 'protobuf', model: 'größer' });
      await nextMillisecond();
      const { resourceMetrics } = await reader.collect();
      const answer = await post(ProtobufMetricsSerializer.serializeRequest(resourceMetrics)!);
      expect([answer.status, answer.headers.get('content-type')]).to.deep.equal([200, 'application/x-protobuf']);
      expect((await answer.arrayBuffer()).byteLength).to.equal(0);
    }
    expect(await usageOf('protobuf')).to.equal('12.5');
    counter.add(1, { model: 'nobody' });
    const { resourceMetrics } = await reader.collect();
    const partly = await post(ProtobufMetricsSerializer.serializeRequest(resourceMetrics)!);
    expect(ProtobufMetricsSerializer.deserializeResponse(Buffer.from(await partly.arrayBuffer()))).to.deep.include({
      partialSuccess: {
        rejectedDataPoints: 1,
        errorMessage: 'tokens: the attribute external_customer_id is required',
      },
    });
    await provider.shutdown();
    const broken = await post(Buffer.from([0x0a, 0x7f]));
    expect([broken.status, broken.headers.get('content-type')]).to.deep.equal([400, 'application/x-protobuf']);
    expect(Buffer.from(await broken.arrayBuffer()).toString('latin1')).to.match(/must be a metrics request of OTLP/);
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
    const csv = await send('a,b', { headers: { 'content-type': 'text/csv' } });
    expect(csv.status).to.equal(400);
    expect(csv.body.message).to.match(/must be JSON/);
  });

  it('403 without event:write', async () => {
    expect((await send(OTLP_EXAMPLE, { key: await world.api.keyWithRoles(['metrics_reader']) })).status).to.equal(403);
  });
});

/** What a collector is told of an event, from its request to its bucket, and of an invoice, from its job to its row. */

import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import express, { type Request } from 'express';
import { traceRequests } from '../../api/http/trace-requests.ts';
import { readConfig } from '../../config.ts';
import { makeLogger } from '../../process/logger.ts';
import { type RunningService, startService } from '../../service.ts';
import { openTelemetry } from '../../tracing/open-telemetry.ts';
import { inTrace, isTracing, useTracer } from '../../tracing/spans.ts';
import { summarizeStatement } from '../../tracing/statement.ts';
import type { AnswerTo } from '../support/answers.ts';
import { type CollectedSpan, type Collector, startCollector, treeOf } from '../support/collector.ts';
import { ROOT } from '../support/service.ts';
import { isLogProcessed, isSettled } from '../support/settled.ts';
import { type FreshDatabase, freshDatabase } from '../support/stores.ts';
import { until } from '../support/until.ts';

const KEY = 'farthing-test-key';
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const OTHER_TRACE = TRACE.replace('4', '5');
const CALLER = '00f067aa0ba902b7';

describe('traces', () => {
  let database: FreshDatabase;
  let collector: Collector;
  let service: RunningService | undefined;
  let now: Date;
  const lines: string[] = [];

  const open = async () => {
    [database, collector] = await Promise.all([freshDatabase(), startCollector()]);
    now = new Date('2026-03-15T12:00:00Z');
    lines.length = 0;
  };
  const close = async () => {
    await service?.stop();
    service = undefined;
    await collector.stop();
    await database.close();
  };

  const start = async (settings: Record<string, string> = {}) => {
    const config = readConfig({
      PORT: '0',
      DATABASE_URL: database.postgres_url,
      CLICKHOUSE_URL: database.clickhouse_url,
      BOOTSTRAP_API_KEY: KEY,
      LOG_LEVEL: 'silent',
      BILLING_INTERVAL_SECONDS: '1',
      ...settings,
    });
    service = await startService(config, { clock: () => now, logger: logger() });
    return service;
  };
  const logger = () => makeLogger({ LOG_LEVEL: 'info' }, 'farthing', { write: (line) => void lines.push(line) });
  const ask = async <Method extends string, Path extends string>(
    method: Method,
    path: Path,
    { body, headers = {} }: { body?: unknown; headers?: object } = {},
  ) => {
    const answer = await fetch(`${service!.url}/v1${path}`, {
      method,
      headers: { 'x-api-key': KEY, 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    expect(answer.status, `${method} ${path}`).to.be.lessThan(300);
    return (await answer.json()) as AnswerTo<Method, Path>;
  };
  const settled = () => {
    const { postgres, log } = service!.services;
    return until('every event has had its effect', () => isSettled(postgres, () => isLogProcessed(log)));
  };
  /** Everything was sent when it has ended. */
  const spansAfter = async () => {
    await service!.stop();
    service = undefined;
    return collector.spans;
  };
  const meter = () =>
    ask('POST', '/meters', { body: { name: 'Calls', event_name: 'call', aggregation: { type: 'COUNT' } } });
  const event = (event_id: string) => ({ event_id, event_name: 'call', external_customer_id: 'acme' });

  describe('of a service that has ended', () => {
    let spans: readonly CollectedSpan[];
    let ids: { subscription: string; invoice: string };
    let within: string | undefined;
    const logged = () => lines.map((line) => JSON.parse(line));
    const spansIn = (trace: string) => spans.filter(({ trace_id }) => trace_id === trace);

    before(async () => {
      await open();
      await start({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_EXPORTER_OTLP_HEADERS: 'x-team=billing%20one' });
      const { id: meter_id } = await meter();
      await settled();
      const headers = { traceparent: `00-${TRACE}-${CALLER}-01`, 'x-request-id': 'asked-1' };
      await ask('POST', '/events', { body: event('e1'), headers });
      // The next event would otherwise be in the same slice.
      await settled();
      const { id: customer_id } = await ask('POST', '/customers', { body: { external_id: 'acme', name: 'Acme' } });
      await computeInvoice(customer_id);
      ids = await billSubscription(meter_id);
      const log = logger();
      within = await inTrace('a slice', {}, async (span) => {
        log.info('within');
        return span?.trace_id;
      });
      log.info('outside');
      spans = await spansAfter();
    });
    after(close);

    async function billSubscription(meter_id: string) {
      const { id: plan_id } = await ask('POST', '/plans', { body: { name: 'Pro' } });
      const terms = { currency: 'usd', billing_period: 'MONTHLY' };
      const price = { entity_type: 'PLAN', entity_id: plan_id, meter_id, type: 'USAGE', billing_model: 'FLAT_FEE' };
      await ask('POST', '/prices', { body: { ...price, ...terms, amount: '2', invoice_cadence: 'ARREAR' } });
      const body = { external_customer_id: 'acme', plan_id, ...terms };
      const { id: subscription_id } = await ask('POST', '/subscriptions', { body });
      await ask('POST', '/events', { body: event('e2') });
      await settled();
      now = new Date('2026-04-16T12:00:00Z');
      const drafted = () => ask('POST', '/invoices/search', { body: { subscription_id } });
      const invoice = await until('the invoice is there', async () => (await drafted()).items[0]);
      return { subscription: subscription_id, invoice: invoice.id };
    }

    /** The request to compute an invoice has a trace of its own, and its job runs after the answer. */
    async function computeInvoice(customer_id: string): Promise<void> {
      const line_items = [{ display_name: 'Work', quantity: '1', amount: '5' }];
      const totals = { subtotal: '5', total: '5', amount_due: '5' };
      const { id } = await ask('POST', '/invoices', { body: { customer_id, currency: 'usd', line_items, ...totals } });
      const headers = { traceparent: `00-${OTHER_TRACE}-${CALLER}-01` };
      const { workflow_id } = (await ask('POST', `/invoices/${id}/compute`, { headers })) as { workflow_id: string };
      await until('it is computed', async () => {
        const { rows } = await service!.services.postgres.raw(
          `select 1 from workflow_runs where id = ? and workflow_status = 'Completed'`,
          [workflow_id],
        );
        return rows.length > 0;
      });
    }

    it('of an event: from the caller over the request, the log and the slice to its bucket rows', () => {
      const own = spansIn(TRACE);
      expect(treeOf(own, CALLER)).to.include.members([
        'POST /events',
        'POST /events > log.append',
        'POST /events > log.append > slice',
        'POST /events > log.append > slice > slice.read',
        'POST /events > log.append > slice > slice.identity',
        'POST /events > log.append > slice > slice.meter',
        'POST /events > log.append > slice > slice.write_raw_rows',
        'POST /events > log.append > slice > slice.write_raw_rows > INSERT events',
        'POST /events > log.append > slice > slice.write_buckets',
        'POST /events > log.append > slice > slice.write_buckets > INSERT usage_buckets',
        'POST /events > log.append > slice > slice.commit',
      ]);
      const [request] = own.filter(({ name }) => name === 'POST /events');
      expect(request!.attributes).to.include({
        'http.request.method': 'POST',
        'http.route': '/events',
        'http.response.status_code': 202,
        request_id: 'asked-1',
      });
      expect(request!.attributes.tenant_id).to.match(/^tenant_/);
      expect(request!.resource).to.include({ 'service.name': 'farthing' });
      const [slice] = own.filter(({ name }) => name === 'slice');
      expect(slice!.attributes).to.include({ partition: 0, events: 1 });
      const line = logged().find(({ request_id }) => request_id === 'asked-1');
      expect(line, 'the line of the request').to.include({ trace_id: TRACE });
      expect(collector.headers[0]).to.include({ 'x-team': 'billing one' });
      expect(own.filter(({ is_failed }) => is_failed)).to.deep.equal([]);
    });

    it('of an invoice: from the job over plan, price and transaction to its row', () => {
      const [written] = spans.filter(({ attributes }) => attributes.invoice_id === ids.invoice);
      expect(written).to.include({ name: 'invoice.write' });
      const own = spansIn(written!.trace_id);
      const bill = 'job bill-due-periods > subscription.bill > invoice.transaction';
      expect(treeOf(own, undefined)).to.include.members([
        'job bill-due-periods',
        'job bill-due-periods > subscription.bill',
        bill,
        `${bill} > invoice.plan`,
        `${bill} > invoice.plan > invoice.price`,
        `${bill} > invoice.write`,
        `${bill} > invoice.write > INSERT invoices`,
        `${bill} > invoice.write > INSERT invoice_line_items`,
      ]);
      const [billed] = own.filter(({ name }) => name === 'subscription.bill');
      expect(billed!.attributes).to.include({ subscription_id: ids.subscription });
    });

    it('of work that a request leaves behind: the job continues the request', () => {
      const tree = treeOf(spansIn(OTHER_TRACE), CALLER);
      expect(tree).to.include('POST /invoices/:id/compute > job compute-invoice');
    });

    it('in the log: a line that is written within a span has its trace, and no other', () => {
      const found = logged().filter(({ msg }) => /within|outside/.test(msg));
      expect(found.map(({ msg, trace_id }) => [msg, trace_id])).to.deep.equal([
        ['within', within],
        ['outside', undefined],
      ]);
      expect(within).to.match(/^[0-9a-f]{32}$/);
    });
  });

  describe('of a service of its own', () => {
    beforeEach(open);
    afterEach(close);

    it('of two events that one slice takes: the second trace has a span that links to the slice in the first, and back; an event whose trace is not kept leaves no span, in its slice neither', async () => {
      // So long a trickle is gathered after the first slice, which nobody traces: both are in before the next is cut.
      const { services } = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, SLICE_WAIT_MS: '2000' });
      await ask('POST', '/events', { body: event('e'), headers: { traceparent: `00-${TRACE}-${CALLER}-00` } });
      await until('the first had its effect', () => isLogProcessed(services.log));
      await ask('GET', '/events/e');
      await Promise.all(
        [TRACE, OTHER_TRACE].map((trace, index) =>
          ask('POST', '/events', {
            body: event(`e${index}`),
            headers: { traceparent: `00-${trace}-${CALLER}-01` },
          }),
        ),
      );
      await until('both had their effect', () => isLogProcessed(services.log));
      const spans = await spansAfter();
      const named = (name: string) => spans.filter((span) => span.name === name);
      const slices = named('slice');
      expect(slices).to.have.length(1);
      const [joined] = named('slice.joined');
      expect([slices[0]!.trace_id, joined!.trace_id]).to.have.members([TRACE, OTHER_TRACE]);
      expect(joined!.links).to.deep.equal([idOf(slices[0]!)]);
      expect(slices[0]!.links.map(({ trace_id }) => trace_id)).to.deep.equal([joined!.trace_id]);
      const begun = ['GET /events/:id', 'POST /events', 'log.append', 'slice.commit'].map((name) => named(name).length);
      expect(begun, 'spans of requests: of the three events two are traced').to.deep.equal([1, 2, 2, 1]);
    });

    it('to a collector that never answers: nothing waits for it, and the process ends', async () => {
      const silent = createServer(() => undefined).listen(0, '127.0.0.1');
      await once(silent, 'listening');
      try {
        await start({ OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(silent.address() as AddressInfo).port}` });
        await meter();
        // More spans than are kept while they cannot be sent.
        for (let n = 0; n < 3_000; n++) await inTrace('a job', {}, async () => undefined);
        for (let round = 0; round < 2; round++)
          await Promise.all(
            Array.from({ length: 20 }, (_none, index) => ask('POST', '/events', { body: event(`e${round}-${index}`) })),
          );
        await settled();
        now = new Date(now.getTime() + 1_000);
        const asked = { event_name: 'call', external_customer_id: 'acme', aggregation_type: 'COUNT' };
        expect((await ask('POST', '/events/usage', { body: asked })).value).to.equal('40');
        const began = performance.now();
        await spansAfter();
        expect(performance.now() - began).to.be.lessThan(10_000);
      } finally {
        silent.closeAllConnections();
        silent.close();
      }
    });

    it('without the setting: nothing is wrapped, and no record has a place in a trace', async () => {
      const { services } = await start();
      expect(isTracing()).to.equal(false);
      await ask('POST', '/events', { body: event('e1'), headers: { traceparent: `00-${TRACE}-${CALLER}-01` } });
      const { rows } = await services.postgres.raw('select traceparent from log_records');
      expect(rows).to.deep.equal([{ traceparent: null }]);
      expect(Object.hasOwn(services.log, 'append'), 'the log appends as it is').to.equal(false);
      await service!.stop();
      service = undefined;
      expect(collector.headers).to.deep.equal([]);
    });
  });
});

describe('the library of traces', () => {
  /** Numbers of its files that all parts of the service load without the setting, and with it. */
  const loaded = () => {
    const program = `
      import { createRequire } from 'node:module';
      import { readConfig } from './config.ts';
      import { startTracing } from './process/tracing.ts';
      await Promise.all([import('./service.ts'), import('./api/app.ts'), import('./pipeline/pipeline.ts')]);
      const counts = [];
      for (const settings of [{}, { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' }]) {
        await startTracing(readConfig(settings), 'farthing');
        const files = Object.keys(createRequire(import.meta.url).cache);
        counts.push(files.filter((file) => /@opentelemetry.(sdk|exporter|otlp)/.test(file)).length);
      }
      console.log(JSON.stringify(counts));
      process.exit();`;
    const args = ['--import', './process/typescript.mjs', '--input-type=module', '-e', program];
    const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' });
    expect(stderr).to.equal('');
    return JSON.parse(stdout) as [number, number];
  };

  it('is loaded with the setting, and not at all without', () => {
    const [without, withIt] = loaded();
    expect(without).to.equal(0);
    expect(withIt).to.be.greaterThan(10);
  });

  it('begins the span of a request when it arrived, before it waited for its admission', async () => {
    const collector = await startCollector();
    const { tracer, stop } = openTelemetry({
      url: `${collector.url}/v1/traces`,
      headers: undefined,
      resource_attributes: undefined,
      service: { name: 'farthing', is_default: true, version: '1' },
      sampler: 'always_on',
      ratio: 1,
      notify: () => undefined,
    });
    useTracer(tracer);
    const waited_ms = 60_000;
    const app = express().use(traceRequests, (_request, response) => void response.end());
    const server = createServer((request, response) => {
      (request as Request).arrived_ms = performance.now() - waited_ms;
      app(request, response);
    }).listen(0, '127.0.0.1');
    try {
      await once(server, 'listening');
      await (await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/customers`)).text();
      server.close();
      await once(server, 'close');
      await stop();
      expect(collector.spans.map(({ name }) => name)).to.deep.equal(['GET']);
      expect(collector.spans[0]!.duration_ms).to.be.within(waited_ms, 2 * waited_ms);
    } finally {
      useTracer(undefined);
      server.closeAllConnections();
      await collector.stop();
    }
  });

  it('says once that spans are lost, and once that they are taken again', async () => {
    let status = 400;
    const batches: true[] = [];
    const moody = createServer((request, response) => {
      request.resume();
      response.writeHead(status).end('{}', () => void batches.push(true));
    }).listen(0, '127.0.0.1');
    await once(moody, 'listening');
    const told: string[] = [];
    const { tracer, stop } = openTelemetry({
      url: `http://127.0.0.1:${(moody.address() as AddressInfo).port}/v1/traces`,
      headers: undefined,
      resource_attributes: undefined,
      service: { name: 'farthing', is_default: true, version: '1' },
      sampler: 'always_on',
      ratio: 1,
      notify: (what) => void told.push(what),
    });
    try {
      for (const answers of [400, 400, 200, 200]) {
        status = answers;
        // So many go out at once.
        for (let span = 0; span < 512; span++) tracer.start('a span', {}).end();
        await until('they are sent', async () => batches.shift());
      }
      await until('it is told', async () => told.length === 2);
      expect(told).to.deep.equal(['spans are not taken, and lost', 'spans are taken again']);
    } finally {
      await stop();
      moody.closeAllConnections();
      moody.close();
    }
  });
});

describe('the name of a statement', () => {
  const cases: [statement: string, name: string][] = [
    ['select * from "meters" where "id" = $1', 'SELECT meters'],
    ['insert into "invoices" ("id") values ($1)', 'INSERT invoices'],
    ['INSERT INTO usage_buckets (a, b) SETTINGS x = 1 FORMAT Native', 'INSERT usage_buckets'],
    ['  update slices set phase = $1', 'UPDATE slices'],
    ['ALTER TABLE `events` DELETE WHERE 1', 'ALTER events'],
    ['BEGIN;', 'BEGIN'],
    ['select v.* from (select * from unnest($1::text[]) as k) cross join (select * from meters)', 'SELECT meters'],
    ['with a as (select * from unnest($1::int[])) insert into log_records select * from a', 'INSERT log_records'],
    [' with done as (update slices set phase = $1 returning 1) select * from done', 'UPDATE slices'],
    ['with l as (select 1 from t as p for update of p), s as (update slots set a = $1) select 1', 'UPDATE slots'],
    ['with a as (select * from invoices) select count(*) from a', 'SELECT invoices'],
    ['select 1 as "a" where \'secret\' = $1', 'SELECT'],
  ];
  for (const [statement, name] of cases)
    it(name, () => {
      expect(summarizeStatement(statement)).to.equal(name);
    });
});

function idOf({ trace_id, span_id }: CollectedSpan) {
  return { trace_id, span_id };
}

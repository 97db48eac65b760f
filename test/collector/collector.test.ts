/**
 * A real OpenTelemetry collector between an SDK and the service, both with their defaults: cumulative sums, in protobuf, packed with gzip.
 * `otelcol` is on the PATH, with the receiver otlp and the exporter otlphttp (.ci/run builds one); without it the test fails.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http';
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { until } from '../support/until.ts';
import { startWorld, type World } from '../support/world.ts';

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

describe('a collector of OpenTelemetry', () => {
  let world: World;
  let collector: ChildProcess;
  let url: string;
  let logged = '';
  const folder = mkdtempSync(join(tmpdir(), 'collector-'));

  before(async () => {
    world = await startWorld({ now: new Date().toISOString() });
    await world.meter('tokens', { type: 'SUM', field: 'value' });
    await world.waitForPipeline();
    const port = await findFreePort();
    const config = {
      receivers: { otlp: { protocols: { http: { endpoint: `127.0.0.1:${port}` } } } },
      exporters: { otlphttp: { endpoint: `${world.api.url}/v1/otlp`, headers: { 'x-api-key': world.api.key } } },
      service: {
        telemetry: { metrics: { level: 'none' } },
        pipelines: { metrics: { receivers: ['otlp'], exporters: ['otlphttp'] } },
      },
    };
    writeFileSync(join(folder, 'config.yaml'), JSON.stringify(config));
    collector = spawn('otelcol', ['--config', join(folder, 'config.yaml')], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    collector.on('error', (error) => (logged += error.message));
    collector.stderr!.on('data', (piece) => (logged += piece));
    url = `http://127.0.0.1:${port}/v1/metrics`;
    await until('the collector listens', () =>
      fetch(url).then(
        () => true,
        () => false,
      ),
    );
  });
  after(async () => {
    collector?.kill();
    await world?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  async function usageOf(customer: string): Promise<string> {
    await world.waitForPipeline();
    const now = Date.now();
    const range = {
      start_time: new Date(now - 86_400_000).toISOString(),
      end_time: new Date(now + 86_400_000).toISOString(),
    };
    const query = {
      event_name: 'tokens',
      external_customer_id: customer,
      property_name: 'value',
      aggregation_type: 'SUM',
    };
    return (await world.post('/events/usage', { ...query, ...range })).value;
  }

  it('brings the counters of a process, export after export, and after its restart', async () => {
    for (const values of [
      [10, 2.5],
      [4, 1],
    ]) {
      const reader = new PeriodicExportingMetricReader({
        exporter: new OTLPMetricExporter({ url }),
        exportIntervalMillis: 3_600_000,
      });
      const provider = new MeterProvider({ readers: [reader] });
      const counter = provider.getMeter('test').createCounter('tokens');
      for (const value of values) {
        counter.add(value, { external_customer_id: 'acme' });
        const began = Date.now();
        await until('the clock moves on', async () => Date.now() > began + 1);
        await provider.forceFlush();
      }
      await provider.shutdown();
    }
    await until(`the usage is there: ${logged}`, async () => (await usageOf('acme')) === '17.5');
  });

  it('logs why a point is refused', async () => {
    const reader = new PeriodicExportingMetricReader({
      exporter: new OTLPMetricExporter({ url }),
      exportIntervalMillis: 3_600_000,
    });
    const provider = new MeterProvider({ readers: [reader] });
    provider.getMeter('test').createCounter('tokens').add(1);
    await provider.shutdown();
    await until('the reason is logged', async () => logged.includes('the attribute external_customer_id is required'));
  });
});

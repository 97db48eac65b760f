/**
 * One data directory and several processes that want it, from namespaces of their own as from two containers on one volume: the
 * kernel's lock decides, and who does not get it changes nothing. Needs root, and fails where `unshare` is not permitted.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import {
  type Apart,
  runScript,
  type ServiceProcess,
  signalTo,
  startServiceProcess,
  stillAlive,
  temporaryDirectory,
  unshareCommand,
} from '../support/service.ts';
import { until } from '../support/until.ts';

const MARCH = { start_time: '2026-03-01T00:00:00Z', end_time: '2026-04-01T00:00:00Z' };

describe('a data directory', function () {
  this.timeout(240_000);
  const directory = temporaryDirectory();
  const dir = join(directory.path, 'data');
  const settings = { DATA_DIR: dir, BOOTSTRAP_API_KEY: 'sk_test_directory', LOG_PARTITIONS: '1' };
  let service: ServiceProcess;
  let meter_id: string;
  let sent = 0;

  before(async () => {
    const [command, ...args] = [...unshareCommand('network'), 'true'];
    const { status, stderr, error } = spawnSync(command!, args, { encoding: 'utf8' });
    expect(status, `these tests need unshare, and it is not permitted here: ${error?.message ?? stderr}`).to.equal(0);
    service = await startServiceProcess(settings);
    const meter = { name: 'Calls', event_name: 'call', aggregation: { type: 'COUNT' } };
    meter_id = (await service.request('POST', '/meters', { body: meter })).body.id;
  });
  after(async () => {
    await service?.stop();
    directory.remove();
  });

  const send = async () => {
    const timestamp = new Date(Date.UTC(2026, 2, 10, 0, 0, sent)).toISOString();
    const body = { event_id: `e${sent}`, event_name: 'call', external_customer_id: 'acme', timestamp };
    const answer = await service.request('POST', '/events', { body });
    expect(answer.status, answer.text).to.equal(202);
    sent += 1;
  };
  /** Sends while the work lasts, and some after it. */
  const sendDuring = async <T>(work: Promise<T>): Promise<T> => {
    let is_over = false;
    const over = work.finally(() => (is_over = true));
    while (!is_over) await send();
    for (let more = 0; more < 20; more++) await send();
    return over;
  };
  const expectAllCounted = () =>
    until('everything that was accepted is counted once', async () => {
      const answer = await service.request('POST', '/events/usage/meter', { body: { meter_id, ...MARCH } });
      expect(answer.status, answer.text).to.equal(200);
      return answer.body.event_count === sent;
    });
  /** Every name in the directory, and what the files say by which processes know each other. */
  const takePicture = () => ({
    names: readdirSync(dir).sort(),
    postgres: readdirSync(join(dir, 'postgres', 'data')).sort(),
    files: ['farthing.lock', 'stores.lock', 'stores.json', 'postgres/data/postmaster.pid'].map((name) => [
      name,
      statSync(join(dir, name)).ino,
      readFileSync(join(dir, name), 'utf8'),
    ]),
  });
  const run = async (name: string, args: string[], apart?: Apart) => {
    const command = runScript(name, args, settings, { apart });
    const { code } = await command.ended;
    return { code, said: command.stdout(), faults: command.stderr() };
  };
  const inUse = () =>
    new RegExp(
      `^\\w+: The data directory ${dir} is in use by process ${service.pid} on \\S+: stop it, or choose[^\\n]*\\n$`,
    );

  const REFUSED: [what: string, name: string, args: string[], apart: Apart | undefined][] = [
    ['a second start from another pid namespace', 'start', [], 'processes'],
    ['npm run partitions', 'partitions', ['--to', '2'], undefined],
    ['npm run partitions from another pid namespace', 'partitions', ['--to', '2'], 'processes'],
    ['npm run audit from where the stores cannot be reached', 'audit', [], 'network'],
  ];
  for (const [what, name, args, apart] of REFUSED)
    it(`refuses ${what} in one line, and nothing is changed or lost`, async () => {
      const before_ = takePicture();
      const { code, said, faults } = await sendDuring(run(name, args, apart));
      expect(faults).to.match(inUse());
      expect({ code: code === 0, said }).to.deep.equal({ code: false, said: '' });
      expect(takePicture()).to.deep.equal(before_);
      await expectAllCounted();
    });

  for (const apart of [undefined, 'processes', 'network'] as const)
    it(`serves commands beside the service${apart ? `, also where it sees no other ${apart}` : ''}`, async () => {
      const tenants = await sendDuring(run('tenants', [], apart));
      expect({ ...tenants, said: tenants.said.replace(/\S+/, 'ID') }).to.deep.equal({
        code: 0,
        said: 'ID  Default\n',
        faults: '',
      });
    });

  it('is kept by its stores when somebody removes the lock under its owner', async () => {
    rmSync(join(dir, 'farthing.lock'));
    expect((await sendDuring(run('start', []))).faults).to.match(inUse());
    await expectAllCounted();
  });

  it('is free at once when its owner is killed, for a start from another pid namespace', async () => {
    await sendDuring(Promise.resolve());
    process.kill(service.pid, 'SIGKILL');
    await service.ended;
    service = await startServiceProcess(settings, { apart: 'processes' });
    await send();
    await expectAllCounted();
  });

  it('is not taken over while a Postgres that nobody sees still works in it', async () => {
    const postgres = service.store('postgres');
    await service.stop();
    service = await startServiceProcess(settings);
    const orphan = service.store('postgres');
    expect(orphan).not.to.equal(postgres);
    const pid_file = () => readFileSync(join(dir, 'postgres', 'data', 'postmaster.pid'), 'utf8');
    const before_ = pid_file();
    process.kill(orphan, 'SIGSTOP');
    try {
      process.kill(service.pid, 'SIGKILL');
      await service.ended;
      const next = runScript('start', [], { ...settings, LOG_LEVEL: 'warn' }, { apart: 'processes' });
      await until('it waits', async () => next.stdout().includes('waiting for the stores of an earlier run to end'));
      expect(next.stdout()).to.contain('processes of another container or user');
      expect(pid_file()).to.equal(before_);
      process.kill(orphan, 'SIGCONT');
      await until('it is ready', async () => next.stdout().includes('farthing is ready'));
      expect(await stillAlive([{ pid: orphan, parent: 0, command: 'Postgres' }], 0)).to.deep.equal([]);
      next.child.kill('SIGKILL');
      await next.ended;
    } finally {
      signalTo(orphan, 'SIGCONT');
    }
    service = await startServiceProcess(settings);
    await expectAllCounted();
  });

  it('goes to one of two that start at the same moment, wherever they are', async () => {
    await service.stop();
    const starts = (['processes', undefined] as const).map((apart) => startServiceProcess(settings, { apart }));
    const [first, second] = await Promise.allSettled(starts);
    const won = [first!, second!].filter((each) => each.status === 'fulfilled');
    const lost = [first!, second!].filter((each) => each.status === 'rejected');
    expect([won.length, lost.length]).to.deep.equal([1, 1]);
    expect(String(lost[0]!.reason)).to.match(
      /The data directory \S+ is in use by (another process|process \d+ on \S+):/,
    );
    service = won[0]!.value;
    await send();
    await expectAllCounted();
  });
});

/**
 * Everything in one process tree with stores of its own, on a disk of its own where one can be mounted. Its engine can be
 * killed at a system call, and have another clock; its disk can hang, be full, and lose its power.
 */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { auditAnswer } from '../faults/compare.ts';
import { type Disk, mountDisk } from '../faults/disk.ts';
import { zero } from '../faults/files.ts';
import { SupervisedService } from '../faults/supervised.ts';
import { type CallFault, type SystemCallFaults, systemCallFaults } from '../faults/system-calls.ts';
import { tablePath } from '../faults/tables.ts';
import type { Chance } from '../support/seeds.ts';
import { signalTo, temporaryDirectory } from '../support/service.ts';
import { until } from '../support/until.ts';
import { type Disturbance, drawn, PIPELINE_SETTINGS, type Stage } from './stage.ts';

const TABLES = ['events', 'event_identities', 'event_outcomes', 'event_corrections', 'usage_buckets', 'write_fences'];
const CLOCK_STEPS = [65_000, 86_400_000, -3_600_000];
const DISK_MEGABYTES = 4_000;
/** A statement of the kind that is to be met comes within it, or not at all. */
const MET_WITHIN_MS = 4_000;

type Place = { path: string; disk: Disk | undefined; remove(): Promise<void> };

export async function embeddedStage(): Promise<Stage> {
  const faults = await systemCallFaults();
  const place = await openPlace();
  const settings = {
    BOOTSTRAP_API_KEY: 'sk_test_chaos',
    LOG_PARTITIONS: '3',
    ...PIPELINE_SETTINGS,
    ...faults.intoEngine(),
    DATA_DIR: join(place.path, 'data'),
  };
  const installation = new Installation(settings, { faults, place });
  await installation.service.current();
  return {
    ask: (method, path, body) => installation.service.ask(method, path, body),
    disturb: (chance) => drawn(installation.disturbances(), chance).play(chance),
    withStores: (look) => installation.service.withStores(look),
    audit: (args) => auditAnswer(installation.service.settings, args),
    stop: () => installation.stop(),
  };
}

async function openPlace(): Promise<Place> {
  const directory = temporaryDirectory();
  const disk = await mountDisk({ megabytes: DISK_MEGABYTES }).catch((error: Error) => {
    process.stderr.write(`chaos: no full disk and no power loss, because none can be mounted: ${error.message}\n`);
    return undefined;
  });
  return { path: disk?.path ?? directory.path, disk, remove: async () => directory.remove() };
}

class Installation {
  readonly service: SupervisedService;
  readonly #faults: SystemCallFaults;
  readonly #place: Place;
  #disk: Disk | undefined;
  /** Done when the service has ended and is about to be started again. */
  #meanwhile: (() => Promise<void> | void) | undefined;

  constructor(
    settings: Record<string, string> & { DATA_DIR: string },
    { faults, place }: { faults: SystemCallFaults; place: Place },
  ) {
    this.#faults = faults;
    this.#place = place;
    this.#disk = place.disk;
    this.service = new SupervisedService(settings, async () => {
      faults.clear();
      const work = this.#meanwhile;
      this.#meanwhile = undefined;
      await work?.();
    });
  }

  disturbances(): Disturbance[] {
    const always: Disturbance[] = [
      { weight: 6, play: (chance) => this.#kill(chance) },
      { weight: 4, play: (chance) => this.#freeze(chance) },
      { weight: 4, play: (chance) => this.#killAtCall(chance) },
      { weight: 2, play: (chance) => this.#killTwice(chance) },
      { weight: 2, play: (chance) => this.#stall(chance) },
      { weight: 2, play: (chance) => this.#stepClock(chance) },
      { weight: 1, play: (chance) => this.#damageFile(chance) },
    ];
    if (!this.#disk) return always;
    return [
      ...always,
      { weight: 2, play: () => this.#losePower() },
      { weight: 1, play: (chance) => this.#fillDisk(chance) },
    ];
  }

  async stop(): Promise<void> {
    this.#faults.clear();
    await this.service.stop();
    this.#faults.close();
    await this.#disk?.unmount();
    await this.#place.remove();
  }

  async #kill(chance: Chance): Promise<string> {
    const victim = chance.pick(['main', 'main', 'postgres', 'clickhouse'] as const);
    await this.service.kill(victim);
    return `kill -9 ${victim}`;
  }

  async #freeze(chance: Chance): Promise<string> {
    const victim = chance.pick(['main', 'postgres', 'clickhouse'] as const);
    const ms = chance.whole(50, 3_000);
    await this.service.freeze(victim, ms);
    return `SIGSTOP ${victim} for ${ms} ms`;
  }

  async #killAtCall(chance: Chance): Promise<string> {
    const fault = {
      call: chance.pick(['rename', 'rename', 'sync'] as const),
      action: chance.pick(['kill-before', 'kill-after'] as const),
      skip: chance.whole(0, 3),
    };
    const table = chance.pick(TABLES);
    const what = `engine killed at a call of ${table}: ${fault.action} ${fault.call} ${fault.skip}`;
    return (await this.#met({ ...fault, path: `${await tablePath(this.service, table)}tmp_insert_` }))
      ? what
      : `nothing came to it: ${what}`;
  }

  /** Whether it came to it; then the service is started again. */
  async #met(fault: CallFault): Promise<boolean> {
    const { starts } = this.service;
    const id = this.#faults.set(fault);
    const met = await this.#faults.untilMet(id, MET_WITHIN_MS).then(
      () => true,
      () => false,
    );
    this.#faults.remove(id);
    // It may have been met just now.
    if (!met && this.#faults.met(id).length === 0) return false;
    await this.#startedAgain(starts);
    return true;
  }

  async #startedAgain(starts: number): Promise<void> {
    await until('the service is started again', async () => this.service.starts > starts, 60_000);
    await this.service.current();
  }

  /** The second while the first is being made good. */
  async #killTwice(chance: Chance): Promise<string> {
    const [first, second] = [
      chance.pick(['main', 'clickhouse'] as const),
      chance.pick(['main', 'clickhouse'] as const),
    ];
    await this.service.kill(first);
    await pause(chance.whole(0, 400));
    await this.service.kill(second);
    return `two kills in a row of ${first} and ${second}`;
  }

  async #stall(chance: Chance): Promise<string> {
    const [argument, times] = [chance.whole(200, 3_000), chance.whole(1, 4)];
    const id = this.#faults.set({ call: 'sync', action: 'hold', argument, times, path: '/store/' });
    await pause(Math.min(argument * times, 4_000));
    this.#faults.remove(id);
    return `disk hangs for ${times} × ${argument} ms`;
  }

  async #stepClock(chance: Chance): Promise<string> {
    const [step, ms] = [chance.pick(CLOCK_STEPS), chance.whole(200, 3_000)];
    const id = this.#faults.stepClock(step);
    await pause(ms);
    this.#faults.remove(id);
    return `clock steps for ${ms} ms by ${step / 1000} s`;
  }

  /** A file of identities is damaged while nobody looks. */
  async #damageFile(chance: Chance): Promise<string> {
    let what = 'no file damaged: there was none';
    this.#meanwhile = () => {
      const dir = join(this.service.data_dir, 'identities');
      if (!existsSync(dir)) return; // None was written yet, or the power went before it was on the disk.
      const files = readdirSync(dir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
      if (files.length === 0) return;
      const path = chance.pick(files.map(({ parentPath, name }) => join(parentPath, name)).sort());
      const { size } = statSync(path);
      if (size < 2) return;
      zero(path, { from: chance.whole(0, size - 2), length: chance.whole(1, 4_096) });
      what = 'file damaged of identities';
    };
    await this.service.kill('main');
    return what;
  }

  async #losePower(): Promise<string> {
    const service = await this.service.current();
    const pids = [service.pid, ...service.processes().map(({ pid }) => pid)];
    this.#meanwhile = async () => {
      this.#disk = await this.#disk!.losePower();
      this.service.moveTo(join(this.#disk.path, 'data'));
    };
    const { starts } = this.service;
    for (const pid of pids) signalTo(pid, 'SIGKILL');
    await this.#startedAgain(starts);
    return 'power lost';
  }

  async #fillDisk(chance: Chance): Promise<string> {
    const ms = chance.whole(200, 2_500);
    const free = await this.#disk!.fill();
    // Who ends because of it is started again when there is room.
    this.#meanwhile = free;
    await pause(ms);
    await free();
    this.#meanwhile = undefined;
    await this.service.current();
    return `disk full for ${ms} ms`;
  }
}

/**
 * API and workers as processes whose clocks step, brokers that are killed and stopped, and ways to the stores that break and
 * hang, and on which statements get lost, are late, or come twice.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { type SystemCallFaults, systemCallFaults } from '../faults/system-calls.ts';
import { startCluster } from '../support/cluster.ts';
import { startKafka } from '../support/kafka/broker.ts';
import type { Chance } from '../support/seeds.ts';
import { type Disturbance, drawn, PIPELINE_SETTINGS, type Stage } from './stage.ts';
import { outage, someStatements } from './ways-stage.ts';

const BROKERS = 3;
const ROLES = ['api', 'pipeline', 'pipeline', 'scheduler'] as const;

export async function kafkaStage(): Promise<Stage> {
  const faults = await systemCallFaults();
  const kafka = await startKafka({ brokers: BROKERS });
  const cluster = await startCluster({
    kafka,
    apis: 1,
    pipelines: 2,
    schedulers: 1,
    partitions: 4,
    replication: BROKERS,
    settings: { ...PIPELINE_SETTINGS, ...faults.environment() },
  }).catch(async (error) => {
    await kafka.wipe();
    throw error;
  });
  const disturbances: Disturbance[] = [
    {
      weight: 4,
      play: async (chance) => {
        const role = chance.pick(ROLES);
        const victim = chance.pick(cluster.processes(role));
        await victim.kill('SIGKILL');
        await cluster.restart(victim);
        return `kill -9 ${role}`;
      },
    },
    {
      weight: 3,
      play: async (chance) => {
        const role = chance.pick(ROLES);
        const victim = chance.pick(cluster.processes(role));
        const ms = chance.whole(50, 8_000);
        victim.signal('SIGSTOP');
        await pause(ms);
        victim.signal('SIGCONT');
        return `SIGSTOP ${role} for ${ms} ms`;
      },
    },
    {
      weight: 2,
      play: async (chance) => {
        const id = chance.whole(1, BROKERS);
        await kafka.kill(id);
        await kafka.restart(id);
        return 'kill -9 broker';
      },
    },
    {
      weight: 2,
      play: async (chance) => {
        const [id, ms] = [chance.whole(1, BROKERS), chance.whole(50, 4_000)];
        await kafka.pause(id);
        await pause(ms);
        kafka.resume(id);
        return `SIGSTOP broker for ${ms} ms`;
      },
    },
    {
      weight: 2,
      play: (chance) => outage({ Postgres: cluster.postgresWay, ClickHouse: cluster.clickhouseWay }, chance),
    },
    { weight: 4, play: (chance) => someStatements(cluster.statements, chance) },
    { weight: 2, play: (chance) => stepClock(faults, chance) },
  ];
  return {
    ask: (method, path, body) => cluster.request(method, path, { body, timeout_ms: 20_000 }),
    disturb: (chance) => drawn(disturbances, chance).play(chance),
    withStores: (look) => look(cluster.database),
    audit: async (args) => {
      const { code, output } = await cluster.run('commands/audit.ts', ...args).ended;
      return code === 0 ? 'green' : `exit code ${code}: ${output.trim().split('\n').slice(-4).join(' | ')}`;
    },
    stop: async () => {
      kafka.resume();
      cluster.postgresWay.goOn();
      cluster.clickhouseWay.goOn();
      await cluster.stop();
      await kafka.wipe();
      faults.close();
    },
  };
}

/** Of all processes; the stores keep theirs. Not by so much that an invoice would be final before its time. */
async function stepClock(faults: SystemCallFaults, chance: Chance): Promise<string> {
  const [step, ms] = [chance.pick([65_000, -65_000]), chance.whole(200, 3_000)];
  const id = faults.stepClock(step);
  await pause(ms);
  faults.remove(id);
  return `clock steps for ${ms} ms by ${step / 1000} s`;
}

/** API and workers as processes, a broker that is killed and stopped, and ways to the stores that break and hang. */
import { setTimeout as pause } from 'node:timers/promises';
import { startCluster } from '../support/cluster.ts';
import { startKafka } from '../support/kafka/broker.ts';
import type { Chance } from '../support/seeds.ts';
import { PIPELINE_SETTINGS, type Stage } from './stage.ts';

const ROLES = ['api', 'pipeline', 'pipeline', 'scheduler'] as const;

export async function kafkaStage(): Promise<Stage> {
  const kafka = await startKafka({ brokers: 1 });
  const cluster = await startCluster({
    kafka,
    apis: 1,
    pipelines: 2,
    schedulers: 1,
    partitions: 4,
    settings: PIPELINE_SETTINGS,
  }).catch(async (error) => {
    await kafka.wipe();
    throw error;
  });
  const disturbances: ((chance: Chance) => Promise<string>)[] = [
    async (chance) => {
      const role = chance.oneOf(ROLES);
      const victim = chance.oneOf(cluster.processes(role));
      await victim.kill('SIGKILL');
      await cluster.restart(victim);
      return `kill -9 ${role}`;
    },
    async (chance) => {
      const role = chance.oneOf(ROLES);
      const victim = chance.oneOf(cluster.processes(role));
      const ms = chance.whole(50, 8_000);
      victim.signal('SIGSTOP');
      await pause(ms);
      victim.signal('SIGCONT');
      return `SIGSTOP ${role} for ${ms} ms`;
    },
    async () => {
      await kafka.kill();
      await kafka.restart();
      return 'kill -9 broker';
    },
    async (chance) => {
      const ms = chance.whole(50, 4_000);
      kafka.pause();
      await pause(ms);
      kafka.resume();
      return `SIGSTOP broker for ${ms} ms`;
    },
    async (chance) => {
      const [name, way] = chance.oneOf([
        ['Postgres', cluster.postgresWay],
        ['ClickHouse', cluster.clickhouseWay],
      ] as const);
      const ms = chance.whole(50, 4_000);
      if (chance.next() < 0.5) {
        await way.cut();
        await pause(ms);
        await way.restore();
        return `cut ${name} for ${ms} ms`;
      }
      way.hang();
      await pause(ms);
      way.goOn();
      return `hang ${name} for ${ms} ms`;
    },
  ];
  return {
    ask: (method, path, body) => cluster.request(method, path, { body, timeout_ms: 20_000 }),
    disturb: (chance) => chance.oneOf(disturbances)(chance),
    withStores: (look) => look(cluster.database),
    stop: async () => {
      kafka.resume();
      cluster.postgresWay.goOn();
      cluster.clickhouseWay.goOn();
      await cluster.stop();
      await kafka.wipe();
    },
  };
}

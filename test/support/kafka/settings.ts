// The settings of each broker of a small cluster on loopback: every node is broker and controller at once (KRaft).
import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';
import { join } from 'node:path';

const HOST = '127.0.0.1';
const LARGEST_MESSAGE = 16 * 1024 * 1024;

export type Layout = { brokers: number; port: number };

/** Broker 1 listens on `port`, its controller one above, the next broker two above. */
export function brokerAddress(layout: Layout, id: number): string {
  return `${HOST}:${layout.port + 2 * (id - 1)}`;
}

function controllerAddress(layout: Layout, id: number): string {
  return `${HOST}:${layout.port + 2 * (id - 1) + 1}`;
}

export function brokerIds(layout: Layout): number[] {
  return Array.from({ length: layout.brokers }, (_, index) => index + 1);
}

/** The text of server.properties for one broker whose files live in `dir`. */
export function serverProperties(layout: Layout, id: number, dir: string): string {
  const all = { ...identity(layout, id, dir), ...durability(layout.brokers), ...smallness() };
  return Object.entries(all)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('');
}

function identity(layout: Layout, id: number, dir: string) {
  return {
    'node.id': id,
    'process.roles': 'broker,controller',
    'controller.quorum.voters': brokerIds(layout)
      .map((each) => `${each}@${controllerAddress(layout, each)}`)
      .join(','),
    listeners: `PLAINTEXT://${brokerAddress(layout, id)},CONTROLLER://${controllerAddress(layout, id)}`,
    'advertised.listeners': `PLAINTEXT://${brokerAddress(layout, id)}`,
    'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',
    'controller.listener.names': 'CONTROLLER',
    'inter.broker.listener.name': 'PLAINTEXT',
    'log.dirs': join(dir, 'data'),
  };
}

// With three brokers an acknowledged message is on two of them, so the loss of any one broker loses no message.
function durability(brokers: number) {
  const copies = Math.min(brokers, 3);
  const inSync = Math.max(copies - 1, 1);
  return {
    'default.replication.factor': copies,
    'min.insync.replicas': inSync,
    'offsets.topic.replication.factor': copies,
    'transaction.state.log.replication.factor': copies,
    'transaction.state.log.min.isr': inSync,
    'share.coordinator.state.topic.replication.factor': copies,
    'share.coordinator.state.topic.min.isr': inSync,
  };
}

// A request for a missing topic fails, because it is a mistake. Few internal partitions and no delays make tests fast.
function smallness() {
  return {
    'auto.create.topics.enable': false,
    'offsets.topic.num.partitions': 4,
    'transaction.state.log.num.partitions': 4,
    'share.coordinator.state.topic.num.partitions': 4,
    'group.initial.rebalance.delay.ms': 0,
    'log.cleaner.dedupe.buffer.size': LARGEST_MESSAGE,
    'message.max.bytes': LARGEST_MESSAGE,
    'replica.fetch.max.bytes': LARGEST_MESSAGE,
  };
}

/**
 * Finds a run of free ports below those that the system assigns to outgoing connections. Otherwise a client that
 * reconnects to a killed broker could get the broker's port itself, and the broker could not restart.
 */
export async function freePorts(count: number): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const first = randomInt(15_000, 30_000);
    if (await allFree(first, count)) return first;
  }
  throw new Error(`Found no ${count} free ports in a row between 15000 and 30000 on ${HOST}.`);
}

async function allFree(first: number, count: number): Promise<boolean> {
  for (let port = first; port < first + count; port++) if (!(await isFree(port))) return false;
  return true;
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, HOST, () => server.close(() => resolve(true)));
  });
}

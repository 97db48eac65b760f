/** Administrative requests to the Kafka cluster: the topic's existence, the bounds of each partition, and the group's offsets. */
import type { Admin, ITopicConfig, Kafka } from 'kafkajs';
import { type FarthingError, notAllowed, unavailable } from '../../../core/foundation/error.ts';
import { HOUR_MS } from '../../../core/foundation/time/durations.ts';
import { toUs } from '../../../core/foundation/time/instant.ts';
import type { PartitionLag } from '../log.ts';

type TopicWanted = {
  readonly topic: string;
  readonly partition_count: number;
  readonly replication: number;
  readonly retention_hours: number;
};

export type PartitionBounds = { readonly partition: number; readonly low: bigint; readonly end: bigint };

/** Maximum size of a batch in the topic. A message of 8 MiB fits, with the overhead of Kafka. */
const BATCH_BYTES_MAX = 16 * 1024 * 1024;
const CONNECT_WITHIN_MS = 2_500;

export class KafkaAdmin {
  readonly #client: () => Kafka;
  #admin: Promise<Admin> | null = null;
  #closed = false;

  constructor(client: () => Kafka) {
    this.#client = client;
  }

  /** Creates the topic if it is missing; returns its number of partitions. */
  async prepareTopic(wanted: TopicWanted): Promise<number> {
    const { topic } = wanted;
    return this.#run(async (admin) => {
      if (!(await admin.listTopics()).includes(topic)) {
        await admin.createTopics({ topics: [topicConfig(wanted)], waitForLeaders: true });
      }
      const { topics } = await admin.fetchTopicMetadata({ topics: [topic] });
      const count = topics[0]?.partitions.length ?? 0;
      if (count === 0) throw new Error(`Kafka says nothing about the topic ${topic}`);
      return count;
    });
  }

  async bounds(topic: string): Promise<PartitionBounds[]> {
    const offsets = await this.#run((admin) => admin.fetchTopicOffsets(topic));
    return offsets
      .map(({ partition, low, high }) => ({ partition, low: BigInt(low), end: BigInt(high) }))
      .sort((a, b) => a.partition - b.partition);
  }

  async lag(
    topic: string,
    { groupId, partition_count }: { groupId: string; partition_count: number },
  ): Promise<PartitionLag[]> {
    // The commits are read first: a later commit makes the lag seem longer than it is, never shorter.
    const [group] = await this.#run((admin) => admin.fetchOffsets({ groupId, topics: [topic] }));
    const committed = new Map(group!.partitions.map(({ partition, offset }) => [partition, BigInt(offset)]));
    const bounds = (await this.bounds(topic)).filter(({ partition }) => partition < partition_count);
    const distances = bounds.map(({ partition, low, end }) => {
      const offset = committed.get(partition);
      // Kafka returns a negative offset for a partition without a commit.
      const isCommitted = offset !== undefined && offset >= 0n;
      return { partition, end_offset: end, committed_offset: isCommitted ? offset : low };
    });
    const late = distances.filter(({ end_offset, committed_offset }) => end_offset > committed_offset);
    const since = await this.#oldest(topic, late);
    return distances.map((distance) => ({
      ...distance,
      unprocessed_records: Math.max(0, Number(distance.end_offset - distance.committed_offset)),
      oldest_unprocessed_at_us: since.get(distance.partition) ?? null,
    }));
  }

  /** Number of consumers in the group. */
  async members(groupId: string): Promise<number> {
    const { groups } = await this.#run((admin) => admin.describeGroups([groupId]));
    return groups.reduce((sum, { members }) => sum + members.length, 0);
  }

  /** Adds partitions. An earlier attempt may have created them already. */
  async addPartitions(topic: string, count: number): Promise<void> {
    const made = await this.#loadPartitions(topic);
    if (made > count) throw notAllowed(`the topic ${topic} has ${made} partitions already`);
    if (made < count) await this.#run((admin) => admin.createPartitions({ topicPartitions: [{ topic, count }] }));
  }

  async ping(topic: string, partitionCount: number): Promise<void> {
    const made = await this.#loadPartitions(topic);
    if (made !== partitionCount) throw toPartitionCountFailure(partitionCount, made);
  }

  async #loadPartitions(topic: string): Promise<number> {
    const { topics } = await this.#run((admin) => admin.fetchTopicMetadata({ topics: [topic] }));
    return topics[0]?.partitions.length ?? 0;
  }

  async close(): Promise<void> {
    this.#closed = true;
    const admin = this.#admin;
    this.#admin = null;
    await admin?.then((open) => open.disconnect()).catch(() => {});
  }

  /**
   * Finds since when the first unprocessed record of each partition has been in the log. Kafka returns the first offset after an instant,
   * so the search doubles the age and then bisects it. The result is never later than the true time, and earlier by at most an eighth of
   * the age.
   */
  async #oldest(
    topic: string,
    late: readonly { partition: number; committed_offset: bigint }[],
  ): Promise<Map<number, number>> {
    const probes = new Map<number, Map<number, bigint>>();
    const isBehind = async (ms: number, { partition, committed_offset }: (typeof late)[number]) => {
      if (!probes.has(ms)) {
        const offsets = await this.#run((admin) => admin.fetchTopicOffsetsByTimestamp(topic, ms));
        probes.set(ms, new Map(offsets.map((of) => [of.partition, BigInt(of.offset)])));
      }
      return (probes.get(ms)!.get(partition) ?? 0n) <= committed_offset;
    };
    const now = Date.now();
    const since = new Map<number, number>();
    for (const partition_lag of late) {
      let [younger, older] = [0, 250];
      while (older < now && !(await isBehind(now - older, partition_lag))) [younger, older] = [older, older * 2];
      for (let closer = 0; closer < 3; closer++) {
        const middle = Math.round((younger + older) / 2);
        if (await isBehind(Math.max(0, now - middle), partition_lag)) older = middle;
        else younger = middle;
      }
      since.set(partition_lag.partition, toUs(Math.max(0, now - older)));
    }
    return since;
  }

  /** Runs a request. If it fails, the admin client is discarded, because its view of the cluster may be unusable. */
  async #run<Answer>(question: (admin: Admin) => Promise<Answer>): Promise<Answer> {
    if (this.#closed) throw unavailable('the event log (it is closed)');
    const connecting = (this.#admin ??= this.#connect());
    try {
      return await question(await connecting);
    } catch (error) {
      // Only the first failing caller disconnects the client: each call of `disconnect` would add a listener for the open requests.
      if (this.#admin === connecting) {
        this.#admin = null;
        connecting.then((admin) => admin.disconnect()).catch(() => {});
      }
      throw unavailable('the event log', error);
    }
  }

  async #connect(): Promise<Admin> {
    const admin = this.#client().admin({ retry: { retries: 2, initialRetryTime: 100, maxRetryTime: 500 } });
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error('Kafka does not answer')), CONNECT_WITHIN_MS);
    });
    try {
      await Promise.race([admin.connect(), late]);
      return admin;
    } catch (error) {
      admin.disconnect().catch(() => {});
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }
}

/**
 * Error for a topic with more partitions than are in use. It accepts no events, because no worker reads the additional partitions
 * (grow.ts).
 */
export function toPartitionCountFailure(used: number, made: number): FarthingError {
  return unavailable(
    `the event log (its topic has ${made} partitions, ${used} are in use: finish with npm run partitions)`,
  );
}

function topicConfig({ topic, partition_count, replication, retention_hours }: TopicWanted): ITopicConfig {
  return {
    topic,
    numPartitions: partition_count,
    replicationFactor: replication,
    configEntries: [
      // An acknowledged record is on a majority of the replicas: with three, any one may be lost.
      { name: 'min.insync.replicas', value: String(replication < 3 ? 1 : Math.floor(replication / 2) + 1) },
      { name: 'retention.ms', value: String(retention_hours * HOUR_MS) },
      { name: 'retention.bytes', value: '-1' },
      { name: 'cleanup.policy', value: 'delete' },
      { name: 'max.message.bytes', value: String(BATCH_BYTES_MAX) },
      // The broker's clock: retention must not depend on the clock of the accepting process.
      { name: 'message.timestamp.type', value: 'LogAppendTime' },
      { name: 'unclean.leader.election.enable', value: 'false' },
    ],
  };
}

/**
 * Begin and end offsets of the log's partitions on Kafka, read without opening the log: nothing is created, and no other consumer
 * is affected.
 */
import { KafkaAdmin, type PartitionBounds } from '../log/kafka/admin.ts';
import { createKafkaClient, type KafkaConnection } from '../log/kafka/client.ts';

const REQUEST_TIMEOUT_MS = 10_000;

export async function loadKafkaBounds(connection: KafkaConnection, topic_prefix: string): Promise<PartitionBounds[]> {
  const admin = new KafkaAdmin(() => createKafkaClient(connection, { requestTimeout: REQUEST_TIMEOUT_MS }));
  try {
    return await admin.bounds(`${topic_prefix}.events`);
  } finally {
    await admin.close();
  }
}

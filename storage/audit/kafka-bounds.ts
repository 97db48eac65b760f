/** Where the partitions of the log on Kafka begin and end, asked without opening the log: nothing is made, nobody is kept out. */
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

/** Events keep their places when partitions are added to a topic, and one store that was restored is refused as with any log. */
import { openKafkaLog } from '../../storage/log/kafka/kafka.ts';
import { createLayoutReader } from '../../storage/log/kafka/layout.ts';
import { growthContract } from '../storage/log/growth-contract.ts';
import { startKafka, type TestKafka } from '../support/kafka/broker.ts';
import { startMetering } from '../support/metering.ts';

describe('growing a topic, as any log', function () {
  this.timeout(300_000);
  let kafka: TestKafka;
  let topics = 0;
  before(async () => {
    kafka = await startKafka({ brokers: 1 });
  });
  after(() => kafka?.wipe());

  growthContract((partitions) => {
    const topic_prefix = `growth${++topics}`;
    return startMetering({
      partitions,
      open_log: (postgres, partition_count) =>
        openKafkaLog({
          brokers: kafka.brokers.split(','),
          topic_prefix,
          partition_count,
          replication: 1,
          retention_hours: 24,
          append_timeout_ms: 3_000,
          session_timeout_ms: 6_000,
          linger_ms: 20,
          layout: createLayoutReader(postgres),
        }),
    });
  });
});

import { kafkaStage } from '../chaos/kafka-stage.ts';
import { chaosSeeds } from '../support/chaos-seeds.ts';

chaosSeeds('chaos on Kafka', kafkaStage, { seeds: [1], minutes: 0.15, timeout_ms: 400_000 });

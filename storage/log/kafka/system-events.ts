/**
 * Publishes system events to a Kafka topic of their own, for external consumers (docs/rules/webhooks.md, "On Kafka"). The key of a message
 * is the id of the affected record, so that the events of one record stay in order.
 */
import type { Kafka, Message, Producer } from 'kafkajs';
import { unavailable } from '../../../core/foundation/error.ts';
import { groupBy } from '../../../core/foundation/group-by.ts';
import type { PublishedSystemEvent } from '../log.ts';

type SystemEventOptions = {
  readonly topic: string;
  readonly timeout_ms: number;
  client(): Kafka;
};

export class KafkaSystemEvents {
  readonly #options: SystemEventOptions;
  #producer: Promise<Producer> | null = null;

  constructor(options: SystemEventOptions) {
    this.#options = options;
  }

  /** Resolves when all events are durable; a retry after a failure sends all of them again. */
  async send(events: readonly PublishedSystemEvent[]): Promise<void> {
    const { topic, timeout_ms: timeout } = this.#options;
    const connecting = (this.#producer ??= this.#connect());
    try {
      const producer = await connecting;
      // kafkajs may resolve although a part was never sent (appender.ts). So each request has the events of one record: all of them
      // go to one partition, whose answer covers the whole request.
      for (const messages of groupSystemEvents(events)) {
        const answers = await producer.send({ topic, messages, acks: -1, timeout });
        if (answers.length === 0 || answers.some(({ errorCode }) => errorCode !== 0))
          throw new Error('Kafka has not acknowledged the system events');
      }
    } catch (error) {
      if (this.#producer === connecting) {
        this.#producer = null;
        connecting.then((producer) => producer.disconnect()).catch(() => {});
      }
      throw unavailable('the topic of the system events', error);
    }
  }

  async close(): Promise<void> {
    const producer = this.#producer;
    this.#producer = null;
    await producer?.then((open) => open.disconnect()).catch(() => {});
  }

  async #connect(): Promise<Producer> {
    const producer = this.#options.client().producer({ idempotent: false, allowAutoTopicCreation: false });
    await producer.connect();
    return producer;
  }
}

function groupSystemEvents(events: readonly PublishedSystemEvent[]): Message[][] {
  return [...groupBy(events, ({ entity_id }) => entity_id).values()].map((group) => group.map(toSystemEventMessage));
}

function toSystemEventMessage(event: PublishedSystemEvent): Message {
  const { id, event_name, entity_type, entity_id, tenant_id, environment_id } = event;
  return {
    key: entity_id,
    value: JSON.stringify(event),
    headers: { id, event_name, entity_type, entity_id, tenant_id, environment_id },
  };
}

/**
 * Publishes dead letters to a Kafka topic of their own, one message each, whose value is the received bytes. The stores also have them as
 * rows, from which they are listed and replayed; the topic is for external consumers.
 */
import type { Kafka, Message, Producer } from 'kafkajs';
import { unavailable } from '../../../core/foundation/error.ts';
import type { LogDeadLetter } from '../log.ts';

type DeadLetterOptions = {
  readonly topic: string;
  readonly timeout_ms: number;
  client(): Kafka;
};

/** Limits of one request. The broker accepts 16 MiB per request, and a dead letter has at most 8 MiB. */
const REQUEST_BYTES_MAX = 8 * 1024 * 1024;
const REQUEST_LETTERS_MAX = 1_000;

export class KafkaDeadLetters {
  readonly #options: DeadLetterOptions;
  #producer: Promise<Producer> | null = null;

  constructor(options: DeadLetterOptions) {
    this.#options = options;
  }

  /** Resolves when all dead letters are durable; a retry after a failure sends all of them again. */
  async send(letters: readonly LogDeadLetter[]): Promise<void> {
    for (const messages of splitDeadLetters(letters)) await this.#sendSome(messages);
  }

  async close(): Promise<void> {
    const producer = this.#producer;
    this.#producer = null;
    await producer?.then((open) => open.disconnect()).catch(() => {});
  }

  async #sendSome(messages: Message[]): Promise<void> {
    const { topic, timeout_ms: timeout } = this.#options;
    const connecting = (this.#producer ??= this.#connect());
    try {
      const answers = await (await connecting).send({ topic, messages, acks: -1, timeout });
      // kafkajs may resolve without an answer of the partition (appender.ts). A request has messages for one partition only.
      if (answers.length === 0 || answers.some(({ errorCode }) => errorCode !== 0))
        throw new Error('Kafka has not acknowledged the dead letters');
    } catch (error) {
      if (this.#producer === connecting) {
        this.#producer = null;
        connecting.then((producer) => producer.disconnect()).catch(() => {});
      }
      throw unavailable('the topic of the dead letters', error);
    }
  }

  async #connect(): Promise<Producer> {
    const producer = this.#options.client().producer({
      idempotent: false,
      allowAutoTopicCreation: false,
      // Letters of one log partition stay in one partition, in order.
      createPartitioner: () => (choice) => Number(choice.message.headers!.partition) % choice.partitionMetadata.length,
    });
    await producer.connect();
    return producer;
  }
}

/** Splits dead letters into requests. Those of one request come from one partition, so that one answer covers all of them. */
function splitDeadLetters(letters: readonly LogDeadLetter[]): Message[][] {
  const requests: Message[][] = [];
  let bytes = 0;
  let last: LogDeadLetter | undefined;
  for (const letter of letters) {
    const message = toDeadLetterMessage(letter);
    const size = (message.value as Buffer).length;
    const isFull = bytes + size > REQUEST_BYTES_MAX || requests.at(-1)?.length === REQUEST_LETTERS_MAX;
    if (last === undefined || last.partition !== letter.partition || isFull) {
      requests.push([]);
      bytes = 0;
    }
    requests.at(-1)!.push(message);
    bytes += size;
    last = letter;
  }
  return requests;
}

function toDeadLetterMessage(letter: LogDeadLetter): Message {
  return {
    key: letter.event_id === '' ? null : letter.event_id,
    value: Buffer.from(letter.body),
    headers: {
      tenant_id: letter.tenant_id,
      environment_id: letter.environment_id,
      event_id: letter.event_id,
      reason: letter.reason,
      received_at_us: String(letter.received_at_us),
      partition: String(letter.partition),
      offset: String(letter.offset),
      position: String(letter.position),
    },
  };
}

/**
 * Events just beyond a range that ends now. Of a busy service they are few, and everybody who asks meanwhile wants to know of them:
 * who waits is told by one statement, wherever in the log they stand, so that whoever asks knows also which of them may have
 * been counted while the rows were read.
 */
import type { Range } from '../../core/analytics/segments.ts';
import type { Scope } from '../../core/scope.ts';
import type { ClickHouseClient } from '../clickhouse/clickhouse.ts';
import { eventsOfCustomers, type PlacedEvent } from '../events/raw-events.ts';
import { TogetherByKey } from '../together.ts';
import { asSmall, type QuestionBounds } from './question.ts';

export type BeyondQuestion = Scope & {
  readonly event_name: string;
  readonly external_customer_ids: readonly string[];
  readonly ranges: readonly Range[];
  readonly bounds: QuestionBounds | undefined;
};

/** More are not few: each who asks reads his own, a row at a time. */
const EVENTS_MAX = 20_000;
const QUESTIONS_MAX = 50;

const TOGETHER = new TogetherByKey<ClickHouseClient, BeyondQuestion, PlacedEvent[] | null>(answerAll, QUESTIONS_MAX);

/** Null where there are too many. */
export async function eventsBeyond(
  clickhouse: ClickHouseClient,
  question: BeyondQuestion,
): Promise<PlacedEvent[] | null> {
  const { tenant_id, environment_id, bounds } = question;
  const key = JSON.stringify([tenant_id, environment_id, bounds?.asker ?? null]);
  const events = await TOGETHER.ask(clickhouse, question, key);
  bounds?.signal.throwIfAborted();
  return events;
}

async function answerAll(
  clickhouse: ClickHouseClient,
  asked: readonly BeyondQuestion[],
): Promise<(PlacedEvent[] | null)[]> {
  const { tenant_id, environment_id, bounds } = asked[0]!;
  const [from, to] = [Math.min(...starts(asked)), Math.max(...ends(asked))];
  const wanted = {
    tenant_id,
    environment_id,
    event_names: [...new Set(asked.map(({ event_name }) => event_name))],
    external_customer_ids: [...new Set(asked.flatMap(({ external_customer_ids }) => external_customer_ids))],
    ranges: [[from, to] as const],
    limit: EVENTS_MAX + 1,
  };
  // Who has gone leaves the others their answer.
  const ofAll = bounds && { ...bounds, signal: new AbortController().signal, spent: { work: 0 } };
  const events = await asSmall(ofAll, () => eventsOfCustomers(clickhouse, wanted));
  if (events.length > EVENTS_MAX) return asked.map(() => null);
  return asked.map((one) => events.filter((event) => isAsked(one, event)));
}

function starts(asked: readonly BeyondQuestion[]): number[] {
  return asked.flatMap(({ ranges }) => ranges.map(([start]) => start));
}

function ends(asked: readonly BeyondQuestion[]): number[] {
  return asked.flatMap(({ ranges }) => ranges.map(([, end]) => end));
}

function isAsked({ event_name, external_customer_ids, ranges }: BeyondQuestion, event: PlacedEvent): boolean {
  return (
    event.event_name === event_name &&
    external_customer_ids.includes(event.external_customer_id) &&
    ranges.some(([start, end]) => event.timestamp_us >= start && event.timestamp_us < end)
  );
}

/** The newest events: what each has counted and cost, or why it counts nowhere. Each opens its thread. */
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { GetData } from '../../client/queries.ts';
import { formatQuantity } from '../../figures/format.ts';
import { Money } from '../../figures/money.tsx';
import { ExactTime } from '../../figures/when.tsx';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import styles from './first-bill.module.css';
import { TEXTS } from './texts.ts';
import { type ArrivedEvent, useThreads } from './use-first-bill.ts';

type ArrivedThread = GetData<'/events/{id}/thread'>;

export function ArrivedEvents({
  events,
  isNew,
}: {
  events: readonly ArrivedEvent[];
  isNew: (id: string) => boolean;
}): ReactNode {
  const texts = useTexts(TEXTS);
  const threads = useThreads(events);
  if (events.length === 0) return null;
  return (
    <ul className={styles.events} aria-label={texts.events} aria-live="polite">
      {events.map((event, index) => {
        const thread = threads[index];
        const isWrong = thread?.status === 'not_counted';
        return (
          <li key={event.id} className={isNew(event.id) ? styles.fresh : undefined}>
            <ExactTime at={event.timestamp} />
            <Link
              from="/env/$environment_id"
              to="/env/$environment_id/events"
              search={((old: object) => ({ ...old, step: undefined, with: undefined, event: event.id })) as never}
              className={`mono ${isWrong ? styles.bad : ''}`}
            >
              {event.event_name}
            </Link>
            <bdi>{event.external_customer_id}</bdi>
            <Effect thread={thread} />
          </li>
        );
      })}
    </ul>
  );
}

function Effect({ thread }: { thread: ArrivedThread | undefined }): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  if (!thread || thread.status === 'processing') return <span className={styles.wide}>{texts.processing}</span>;
  if (thread.status === 'not_counted') {
    const near = thread.nearest_event_name;
    const words =
      thread.reason === 'unmatched'
        ? near
          ? texts.noMeterNear(near)
          : texts.noMeter
        : (thread.detail ?? texts.unusable);
    return <span className={`${styles.wide} ${styles.bad}`}>{words}</span>;
  }
  const charges = new Map(thread.charges.map((charge) => [charge.meter_id, charge]));
  const remark =
    charges.size > 0
      ? null
      : thread.reason === 'no_customer' || thread.reason === 'no_subscription'
        ? texts.noCustomer
        : texts.noCharge;
  return (
    <span className={`${styles.wide} ${styles.effects}`}>
      {thread.meters.map(({ meter_id, name, value }) => {
        const charge = charges.get(meter_id);
        return (
          <span key={meter_id} className={styles.effect}>
            <span>
              {formatQuantity(language, value)} <bdi className="label">{name}</bdi>
            </span>
            {charge && <Money amount={charge.amount} currency={charge.currency} />}
          </span>
        );
      })}
      {remark && <span className="label">{remark}</span>}
    </span>
  );
}

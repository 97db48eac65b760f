/** Records that need a person: one row a kind, each a link to the list with that filter. */
import { useQuery } from '@tanstack/react-query';
import { Link, type LinkProps } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { GetData } from '../../client/queries.ts';
import { Chip } from '../../components/chip.tsx';
import { Loaded } from '../../components/states.tsx';
import type { Tone } from '../../components/tone.ts';
import { formatCount } from '../../figures/format.ts';
import { Money } from '../../figures/money.tsx';
import { Day } from '../../figures/when.tsx';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import styles from './home.module.css';
import { attentionQuery } from './queries.ts';
import { TEXTS } from './texts.ts';

type AttentionItem = GetData<'/dashboard/attention'>['items'][number];

type AttentionPlace = {
  readonly to: LinkProps['to'];
  readonly search: Readonly<Record<string, string>>;
  readonly tone: Tone;
};

const PLACES: { readonly [Kind in AttentionItem['kind']]: AttentionPlace } = {
  payment_failed: { to: '/env/$environment_id/invoices', search: { show: 'outstanding' }, tone: 'bad' },
  invoice_overdue: { to: '/env/$environment_id/invoices', search: { show: 'overdue' }, tone: 'bad' },
  invoice_draft_waiting: { to: '/env/$environment_id/invoices', search: { show: 'draft' }, tone: 'warn' },
  events_not_counted: { to: '/env/$environment_id/events', search: { tab: 'uncounted' }, tone: 'bad' },
  dead_letters: { to: '/env/$environment_id/events', search: { tab: 'uncounted', reason: 'dead_letter' }, tone: 'bad' },
  alert_in_alarm: { to: '/env/$environment_id/customers', search: {}, tone: 'warn' },
  task_failed: { to: '/env/$environment_id/settings', search: {}, tone: 'bad' },
  webhook_failing: { to: '/env/$environment_id/webhooks', search: {}, tone: 'bad' },
};

const POLL_MS = 30_000;

export function Attention(): ReactNode {
  const texts = useTexts(TEXTS);
  const attention = useQuery({ ...attentionQuery, refetchInterval: POLL_MS });
  return (
    <Loaded query={attention} rows={3}>
      {({ items }) =>
        items.length === 0 ? (
          <p className={styles.calm}>{texts.calm}</p>
        ) : (
          <ul className={styles.attention}>
            {items.map((item) => (
              <li key={item.kind}>
                <AttentionLink item={item} />
              </li>
            ))}
          </ul>
        )
      }
    </Loaded>
  );
}

function AttentionLink({ item: { kind, count, is_minimum, amounts, oldest_at } }: { item: AttentionItem }): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  const { to, search, tone } = PLACES[kind];
  return (
    <Link
      from="/env/$environment_id"
      to={to as '/env/$environment_id/invoices'}
      search={(({ zone }: { zone?: string }) => ({ ...(zone ? { zone } : {}), ...search })) as never}
    >
      <span>
        <span className={styles.count}>
          {formatCount(language, count)}
          {is_minimum && '+'}
        </span>
        {texts[kind](count)}
      </span>
      <span className={styles.amounts}>
        {amounts.map(({ currency, amount }) => (
          <Money key={currency} amount={amount} currency={currency} />
        ))}
      </span>
      <Chip tone={tone}>
        {texts.since} <Day at={oldest_at} />
      </Chip>
    </Link>
  );
}

/** The time line of a subscription: the schedule above, the past below, and now between them. */
import { Link } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { usePages } from '../../client/pages.ts';
import { useGet } from '../../client/queries.ts';
import { can, useSession } from '../../client/session.ts';
import { Button } from '../../components/button.tsx';
import { Chip } from '../../components/chip.tsx';
import { Section, Sheet } from '../../components/page.tsx';
import { TextButton } from '../../components/text-button.tsx';
import { formatQuantity } from '../../figures/format.ts';
import { Money } from '../../figures/money.tsx';
import { Moment } from '../../figures/when.tsx';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import type { InvoiceRecord } from '../invoices/invoice.ts';
import { useNow } from '../invoices/now.ts';
import { InvoiceStatus } from '../invoices/status-chip.tsx';
import type { SubscriptionRecord } from './subscription.ts';
import styles from './subscriptions.module.css';
import { TEXTS as PAGE_TEXTS } from './texts.ts';
import { buildTimeLine, type LoggedChange, type TimeLineEntry } from './time-line.ts';
import { TEXTS } from './time-line-texts.ts';

const FROM = '/env/$environment_id/subscriptions/$subscription_id';
const PAST_SHOWN = 8;
const TICK_MS = 2_000;
/** Entries of what has happened; the clock of the browser may be late against that of the service. */
const ALWAYS_PAST = new Set<TimeLineEntry['kind']>(['created', 'updated', 'invoice', 'undone']);

type TimeLineProps = {
  subscription: SubscriptionRecord;
  next: InvoiceRecord | undefined;
  onUndo: (schedule_id: string) => void;
};

export function TimeLine({ subscription, next, onUndo }: TimeLineProps): ReactNode {
  const { timeLine } = useTexts(PAGE_TEXTS);
  const texts = useTexts(TEXTS);
  const session = useSession();
  const now_ms = useNow(TICK_MS);
  const [isWhole, setWhole] = useState(false);
  const { id } = subscription;
  const schedules = useGet('/subscriptions/{id}/schedules', { path: { id } });
  const mayInvoices = can(session, 'invoice', 'read');
  const invoices = usePages(
    '/invoices',
    { query: { subscription_id: id, skip_line_items: true } },
    { enabled: mayInvoices },
  );
  const changes = usePages('/audit-logs', { query: { entity_id: id } });
  const entries = buildTimeLine({
    subscription,
    schedules: schedules.data?.schedules ?? [],
    invoices: invoices.rows as readonly InvoiceRecord[],
    changes: changes.rows as readonly LoggedChange[],
    next: next ?? null,
  });
  const isLater = ({ at, kind }: TimeLineEntry) => !ALWAYS_PAST.has(kind) && new Date(at).getTime() > now_ms;
  const later = entries.filter(isLater);
  const past = entries.filter((entry) => !isLater(entry));
  const shown = isWhole ? past : past.slice(0, PAST_SHOWN);
  const loadEarlier = () => {
    setWhole(true);
    if (invoices.rows.length < invoices.total) invoices.loadMore();
    if (changes.rows.length < changes.total) changes.loadMore();
  };
  const hasMore =
    shown.length < past.length || invoices.rows.length < invoices.total || changes.rows.length < changes.total;
  return (
    <Section title={timeLine}>
      <Sheet padded>
        <ol className={styles.line}>
          {later.map((entry) => (
            <Entry key={entry.key} entry={entry} subscription={subscription} onUndo={onUndo} isLater />
          ))}
          <li className={styles.now}>
            <span>{texts.now}</span>
            <span className="label">
              <Moment at={new Date(now_ms).toISOString()} />
            </span>
          </li>
          {shown.map((entry) => (
            <Entry key={entry.key} entry={entry} subscription={subscription} onUndo={onUndo} />
          ))}
        </ol>
        {hasMore && <Button onClick={loadEarlier}>{texts.earlier}</Button>}
      </Sheet>
    </Section>
  );
}

type EntryProps = {
  entry: TimeLineEntry;
  subscription: SubscriptionRecord;
  onUndo: (schedule_id: string) => void;
  isLater?: boolean;
};

function Entry({ entry, subscription, onUndo, isLater = false }: EntryProps): ReactNode {
  return (
    <li className={`${styles.entry} ${isLater ? styles.later : ''}`}>
      <span className={styles.when}>
        <Moment at={entry.at} />
      </span>
      <span className={styles.what}>
        <EntryText entry={entry} subscription={subscription} isLater={isLater} />
        {entry.kind === 'scheduled' && entry.schedule.can_be_cancelled && (
          <UndoButton onUndo={() => onUndo(entry.schedule.id)} />
        )}
      </span>
      <span className={styles.sum}>
        <EntryAmount entry={entry} />
      </span>
    </li>
  );
}

function UndoButton({ onUndo }: { onUndo: () => void }): ReactNode {
  const { undo } = useTexts(PAGE_TEXTS);
  const session = useSession();
  return can(session, 'subscription', 'write') && <TextButton onClick={onUndo}>{undo}</TextButton>;
}

function EntryAmount({ entry }: { entry: TimeLineEntry }): ReactNode {
  if (entry.kind === 'invoice') return <Money amount={entry.invoice.total} currency={entry.invoice.currency} />;
  if (entry.kind === 'next_invoice') return <Money amount={entry.total} currency={entry.currency} />;
  return null;
}

type EntryTextProps = { entry: TimeLineEntry; subscription: SubscriptionRecord; isLater: boolean };

function EntryText({ entry, subscription, isLater }: EntryTextProps): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  const units = (quantity: string) => formatQuantity(language, quantity);
  switch (entry.kind) {
    case 'created':
    case 'updated':
      return (
        <>
          <span className={styles.title}>{texts[entry.kind]}</span>{' '}
          <span className="muted">
            {entry.actor && <bdi>{texts.by(entry.actor)}</bdi>}
            {entry.fields.length > 0 && (
              <>
                : <code>{entry.fields.join(', ')}</code>
              </>
            )}
          </span>
        </>
      );
    case 'invoice':
      return <InvoiceEntry invoice={entry.invoice} />;
    case 'line':
      return (
        <>
          <span className={styles.title}>
            <bdi>{entry.line}</bdi>
          </span>{' '}
          {entry.before === null
            ? texts.begins(entry.after === '' ? null : units(entry.after!))
            : entry.after === null
              ? texts.stops
              : texts.quantity(units(entry.before), units(entry.after))}
        </>
      );
    case 'plan_changed':
      return (
        <>
          <span className={styles.title}>{texts.planChanged}</span> <bdi>{entry.plan_name}</bdi>
        </>
      );
    case 'scheduled':
      return (
        <>
          <span className={styles.title}>
            {entry.schedule.schedule_type === 'cancellation' ? texts.willEnd : texts.willChange}{' '}
            {entry.target_plan_id && <PlanName plan_id={entry.target_plan_id} />}
          </span>{' '}
          {entry.schedule.status === 'failed' ? (
            <Chip tone="bad">{texts.failed}</Chip>
          ) : (
            <Chip tone="info">{texts.scheduled}</Chip>
          )}
          {entry.schedule.error_message && <p className="muted">{entry.schedule.error_message}</p>}
        </>
      );
    case 'undone':
      return (
        <span className={styles.title}>
          {entry.schedule_type === 'cancellation' ? texts.cancelUndone : texts.changeUndone}
        </span>
      );
    case 'next_invoice':
      return (
        <>
          <span className={styles.title}>{texts.nextInvoice}</span>{' '}
          <span className="muted">{subscription.cancel_at ? texts.lastOne : texts.asOfNow}</span>
        </>
      );
    default:
      return <span className={styles.title}>{texts[isLater ? (`${entry.kind}Later` as const) : entry.kind]}</span>;
  }
}

function InvoiceEntry({ invoice }: { invoice: InvoiceRecord }): ReactNode {
  const texts = useTexts(TEXTS);
  return (
    <>
      <Link
        from={FROM}
        to="/env/$environment_id/invoices/$invoice_id"
        params={({ environment_id }) => ({ environment_id, invoice_id: invoice.id })}
        search={({ zone }) => ({ zone })}
      >
        {texts.invoice} <span className="mono">{invoice.invoice_number ?? ''}</span>
      </Link>{' '}
      <InvoiceStatus invoice={invoice} />
    </>
  );
}

/** The name of a plan, once it is known. */
export function PlanName({ plan_id }: { plan_id: string }): ReactNode {
  const plan = useGet('/plans/{id}', { path: { id: plan_id } });
  return <bdi>{plan.data?.name ?? plan_id}</bdi>;
}

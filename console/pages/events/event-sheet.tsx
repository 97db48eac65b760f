/** One event's thread: the event, its customer, the meters that count it, its prices, its invoice; or why it counts nowhere. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { formatExactValue } from '../../client/exact-json.ts';
import { useMayNot } from '../../client/permission.ts';
import { type GetData, invalidate } from '../../client/queries.ts';
import { Button, buttonClass } from '../../components/button.tsx';
import { Chip } from '../../components/chip.tsx';
import { CopyId } from '../../components/copy.tsx';
import { RecordTools } from '../../components/record-tools.tsx';
import { SideSheet } from '../../components/side-sheet.tsx';
import { Loaded } from '../../components/states.tsx';
import { Knot, Thread, WrittenSum } from '../../components/thread.tsx';
import { formatQuantity } from '../../figures/format.ts';
import { Money, Quantity } from '../../figures/money.tsx';
import { ExactTime, Moment, Period } from '../../figures/when.tsx';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import { CorrectEvent } from './correct-event.tsx';
import { InvoiceKnots } from './event-invoices.tsx';
import { buildCorrectionsQuery, buildThreadQuery, type EventThreadData } from './event-queries.ts';
import type { EventsSearch } from './event-search.ts';
import { EVENT_TEXTS } from './event-texts.ts';
import styles from './events.module.css';
import { VoidEvent } from './void-event.tsx';

const FROM = '/env/$environment_id/events';
/** Up to so many meters without a charge have a knot each. */
const OTHERS_MAX = 2;

type EventSheetProps = {
  id: string;
  dialogue: EventsSearch['do'] | undefined;
  onDialogue: (dialogue: EventsSearch['do'] | undefined) => void;
  onClose: () => void;
};

export function EventSheet({ id, dialogue, onDialogue, onClose }: EventSheetProps): ReactNode {
  const texts = useTexts(EVENT_TEXTS);
  const queries = useQueryClient();
  const corrections = useQuery(buildCorrectionsQuery(id));
  const items = corrections.data?.items ?? [];
  const applied = items.filter(({ state }) => state === 'applied').length;
  const found = useQuery(buildThreadQuery(id, applied));
  const thread = found.data;
  const isVoided = thread?.status === 'voided';
  const mayNotCorrect = useMayNot('event:correct');
  const blocked = mayNotCorrect ?? (isVoided ? texts.isVoided : !thread?.event ? texts.notYet : null);
  const close = () => onDialogue(undefined);
  const refresh = async () => {
    await invalidate(queries, '/events');
  };
  return (
    <>
      <SideSheet
        title={texts.whatHappened}
        subtitle={<CopyId id={id} />}
        onClose={onClose}
        footer={
          <>
            <Button blocked={blocked} onClick={() => onDialogue('correct')}>
              {texts.correct}
            </Button>
            <Button blocked={blocked} onClick={() => onDialogue('void')}>
              {texts.void}
            </Button>
          </>
        }
      >
        <Loaded query={found} rows={8}>
          {(data) => (
            <>
              <EventThread thread={data} blocked={blocked} onMend={() => onDialogue('mend')} />
              <Corrections items={items} />
              <div className={styles.tools}>
                <RecordTools record={data} path={`/events/${encodeURIComponent(id)}/thread`} />
              </div>
            </>
          )}
        </Loaded>
      </SideSheet>
      {thread?.event && blocked === null && (dialogue === 'correct' || dialogue === 'mend') && (
        <CorrectEvent
          event={thread.event}
          properties={thread.event.properties}
          mended_name={dialogue === 'mend' ? thread.nearest_event_name : null}
          onDone={refresh}
          onClose={close}
        />
      )}
      {thread?.event && blocked === null && dialogue === 'void' && (
        <VoidEvent event={thread.event} onDone={refresh} onClose={close} />
      )}
    </>
  );
}

type EventThreadProps = {
  thread: EventThreadData;
  /** The reason why the event cannot be mended. */
  blocked: string | null;
  onMend: () => void;
};

function EventThread({ thread, blocked, onMend }: EventThreadProps): ReactNode {
  const texts = useTexts(EVENT_TEXTS);
  const { event, customer, meters, charges, status } = thread;
  const charged = meters.filter(({ meter_id }) => charges.some((charge) => charge.meter_id === meter_id));
  const others = meters.filter((meter) => !charged.includes(meter));
  return (
    <Thread>
      <Knot
        title={texts.event}
        value={
          event && (
            <span className="muted">
              {texts.acceptedAt} <ExactTime at={event.received_at} />
            </span>
          )
        }
        isFilled
      >
        {event && (
          <>
            <span className="mono">{event.event_name}</span>, <Moment at={event.timestamp} />
            {status !== 'counted' && (
              <>
                {' '}
                <Chip tone={status === 'not_counted' ? 'bad' : status === 'voided' ? 'warn' : 'info'}>
                  {texts[status]}
                </Chip>
              </>
            )}
            <Properties properties={event.properties} />
          </>
        )}
      </Knot>
      {status === 'not_counted' ? (
        <NotCounted thread={thread} blocked={blocked} onMend={onMend} />
      ) : (
        <>
          <Knot
            title={texts.customer}
            value={
              customer ? (
                <Link
                  from={FROM}
                  to="/env/$environment_id/customers/$customer_id"
                  params={{ customer_id: customer.id }}
                >
                  <bdi>{customer.name || customer.external_id}</bdi>
                </Link>
              ) : (
                <Chip tone="warn">{texts.no_customer}</Chip>
              )
            }
          >
            {texts.by} <span className="mono">external_customer_id</span>{' '}
            <bdi className="mono">{event?.external_customer_id}</bdi>
            {customer === null && (
              <div className={styles.ask}>
                <Link from={FROM} to="/env/$environment_id/customers" className={buttonClass}>
                  {texts.toCustomers}
                </Link>
              </div>
            )}
          </Knot>
          {charged.map((meter) => (
            <MeterKnot key={meter.meter_id} meter={meter} />
          ))}
          {others.length > OTHERS_MAX ? (
            <OtherMeters meters={others} />
          ) : (
            others.map((meter) => <MeterKnot key={meter.meter_id} meter={meter} />)
          )}
          {charges.map((charge) => (
            <ChargeKnot key={charge.subscription_line_item_id + charge.period_start} charge={charge} />
          ))}
          <InvoiceKnots thread={thread} />
        </>
      )}
    </Thread>
  );
}

/** Meters that nothing charges by, as one sum. */
function OtherMeters({ meters }: { meters: EventThreadData['meters'] }): ReactNode {
  const texts = useTexts(EVENT_TEXTS);
  const language = useLanguage();
  return (
    <Knot title={texts.otherMeters}>
      <WrittenSum
        rows={meters.map(({ meter_id, name, quantity, after }) => ({
          key: meter_id,
          what: (
            <Link from={FROM} to="/env/$environment_id/meters/$meter_id" params={{ meter_id }} search={{}}>
              <bdi>{name}</bdi>
            </Link>
          ),
          times: `${quantity.startsWith('+') ? '+' : ''}${formatQuantity(language, quantity.replace('+', ''))}`,
          amount: `→ ${formatQuantity(language, after)}`,
        }))}
      />
    </Knot>
  );
}

function Properties({ properties }: { properties: Record<string, unknown> }): ReactNode {
  const entries = Object.entries(properties);
  if (entries.length === 0) return null;
  return (
    <table className={styles.properties}>
      <tbody>
        {entries.map(([key, value]) => (
          <tr key={key}>
            <th scope="row">{key}</th>
            <td>
              <bdi>{formatExactValue(value)}</bdi>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function MeterKnot({ meter }: { meter: EventThreadData['meters'][number] }): ReactNode {
  const texts = useTexts(EVENT_TEXTS);
  const language = useLanguage();
  const { quantity, before, after } = meter;
  const sign = quantity.startsWith('+') ? '+' : '';
  return (
    <Knot
      title={
        <>
          {texts.meter} ·{' '}
          <Link
            from={FROM}
            to="/env/$environment_id/meters/$meter_id"
            params={{ meter_id: meter.meter_id }}
            search={{}}
          >
            <bdi>{meter.name}</bdi>
          </Link>
        </>
      }
      value={
        <>
          {sign}
          <Quantity value={quantity.replace('+', '')} />
        </>
      }
    >
      {before === after ? (
        texts.unchanged(formatQuantity(language, after), meter.aggregation)
      ) : (
        <>
          <Quantity value={before} /> → <Quantity value={after} />
        </>
      )}{' '}
      <span className="label">
        · <Period start={meter.period_start} end={meter.period_end} />
      </span>
      {!meter.is_priced && <div>{texts.noPrice}</div>}
    </Knot>
  );
}

function ChargeKnot({ charge }: { charge: EventThreadData['charges'][number] }): ReactNode {
  const texts = useTexts(EVENT_TEXTS);
  const language = useLanguage();
  const { plan_name, price_name, tier, amount, currency, written_out } = charge;
  return (
    <Knot
      title={
        <>
          {texts.price} · <bdi>{price_name}</bdi>
        </>
      }
      value={<Money amount={amount} currency={currency} />}
    >
      <bdi>{plan_name}</bdi>
      {tier !== null && <> · {texts.tier(formatQuantity(language, String(tier)))}</>}
      {written_out !== '0' && <div className="mono">{written_out}</div>}
      <div>
        <Money amount={charge.before} currency={currency} /> → <Money amount={charge.after} currency={currency} />{' '}
        <span className="label">
          · <Period start={charge.period_start} end={charge.period_end} />
        </span>
      </div>
    </Knot>
  );
}

function NotCounted({ thread, blocked, onMend }: EventThreadProps): ReactNode {
  const texts = useTexts(EVENT_TEXTS);
  const { reason, detail, nearest_event_name, event } = thread;
  return (
    <Knot title={texts.notCountedTitle} value={reason && <Chip tone="bad">{texts[reason]}</Chip>} isFilled>
      <span className={styles.fault}>{detail}</span>
      {nearest_event_name !== null && <p>{texts.didYouMean(nearest_event_name)}</p>}
      <div className={styles.ask}>
        {nearest_event_name !== null && (
          <Button onClick={onMend} blocked={blocked}>
            {texts.mendTo(nearest_event_name)}
          </Button>
        )}
        {reason === 'unmatched' && event && (
          <Link
            from={FROM}
            to="/env/$environment_id/meters/new"
            search={{ event: event.event_name }}
            className={buttonClass}
          >
            {texts.newMeter}
          </Link>
        )}
      </div>
    </Knot>
  );
}

/** Corrections of the event with their times and reasons. */
function Corrections({ items }: { items: GetData<'/events/{id}/corrections'>['items'] }): ReactNode {
  const texts = useTexts(EVENT_TEXTS);
  if (items.length === 0) return null;
  return (
    <section aria-label={texts.corrections}>
      <h3>{texts.corrections}</h3>
      <ul className={styles.list}>
        {items.map((item) => (
          <li key={item.id}>
            <Chip tone={item.state === 'applied' ? 'plain' : 'info'}>{texts[item.state]}</Chip>{' '}
            {texts[`did_${item.action}`]}, <Moment at={item.requested_at} />
            <div className="muted">
              <bdi>{item.reason}</bdi>
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Why a line costs what it costs: amount, price, usage, events, proof. */

import { useClipboard } from '@mantine/hooks';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { formatCurl, linkTo } from '../../../client/client.ts';
import type { components } from '../../../client/openapi.d.ts';
import { useMayNot } from '../../../client/permission.ts';
import { useGet } from '../../../client/queries.ts';
import { buttonClass } from '../../../components/button.tsx';
import { coverInstants } from '../../../components/range.ts';
import { SideSheet } from '../../../components/side-sheet.tsx';
import { Knot, type SumRow, Thread, WrittenSum } from '../../../components/thread.tsx';
import { formatCount, formatMoney, formatQuantity } from '../../../figures/format.ts';
import { Money, Quantity } from '../../../figures/money.tsx';
import { Day, ExactTime, Period } from '../../../figures/when.tsx';
import { useLanguage, useTexts } from '../../../texts/texts.ts';
import type { InvoiceLine, InvoiceRecord } from '../invoice.ts';
import { formatLineReason } from '../line-reason.ts';
import { type ExplainedStep, explainLine, type LineExplanation } from './explain-line.ts';
import { useLineEnds } from './line-events.ts';
import { MEASURES } from './measures.ts';
import { ProofKnot } from './proof-knot.tsx';
import { TEXTS } from './texts.ts';
import { formatTimes } from './thread-figures.ts';
import styles from './thread-knots.module.css';

type LineThreadProps = {
  invoice: InvoiceRecord;
  line: InvoiceLine;
  event: string | undefined;
  onFollow: (event_id: string) => void;
  onClose: () => void;
};

export function LineThread({ invoice, line, event, onFollow, onClose }: LineThreadProps): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  const meter = useGet('/meters/{id}', { path: { id: line.meter_id ?? '' } }, { enabled: Boolean(line.meter_id) });
  const ends = useLineEnds(line, meter.data);
  const explained = explainLine(line);
  const { period_start, period_end } = line;
  return (
    <SideSheet
      title={texts.why(formatMoney(language, line.amount, null))}
      subtitle={
        <>
          <bdi>{line.display_name || line.meter_display_name || line.id}</bdi>
          {period_start && period_end && (
            <>
              {', '}
              <Period start={period_start} end={period_end} />
            </>
          )}
        </>
      }
      onClose={onClose}
      footer={<ThreadFooter invoice={invoice} line={line} event_name={meter.data?.event_name} />}
    >
      <Thread>
        <AmountKnot line={line} explained={explained} />
        {explained && <PriceKnot line={line} explained={explained} />}
        {line.meter_id && <UsageKnot line={line} explained={explained} meter={meter.data} />}
        {line.meter_id && <EventsKnot line={line} ends={ends} />}
        <ProofKnot
          invoice={invoice}
          line={line}
          ends={{ first: ends.first?.id, last: ends.last?.id }}
          event={event}
          onFollow={onFollow}
        />
      </Thread>
    </SideSheet>
  );
}

type ExplainedProps = { line: InvoiceLine; explained: LineExplanation | null };

function AmountKnot({ line, explained }: ExplainedProps): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  const { amount, currency, price_unit, price_unit_amount, computed_from } = line;
  const edited = computed_from?.edited;
  const reason = formatLineReason(computed_from, language, currency);
  return (
    <Knot title={texts.lineAmount} value={<Money amount={amount} currency={currency} />} isFilled>
      {explained === null && texts.byHand}
      {explained?.rounded_from &&
        (explained.is_rounded ? (
          <>
            {texts.roundedFrom} <span className="mono">{formatMoney(language, explained.rounded_from, null)}</span>
          </>
        ) : (
          texts.exact
        ))}
      {edited && (
        <p>
          {texts.editedFrom(formatMoney(language, edited.amount, currency), formatQuantity(language, edited.quantity))}
        </p>
      )}
      {price_unit && price_unit_amount && (
        <p>{texts.priceUnit(formatQuantity(language, price_unit_amount), price_unit)}</p>
      )}
      {reason && <p>{reason}</p>}
    </Knot>
  );
}

function PriceKnot({ line, explained }: { line: InvoiceLine; explained: LineExplanation }): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  const money = (amount: string) => formatMoney(language, amount, null);
  const rows: SumRow[] = explained.parts.map((part) => ({
    key: part.key,
    what: texts[part.place === 'all' ? 'allUnits' : part.place](formatQuantity(language, part.units)),
    times: formatTimes(language, part),
    amount: money(part.amount),
  }));
  const total: SumRow = {
    key: 'total',
    what: formatQuantity(language, explained.units),
    amount: money(explained.cost),
  };
  const steps = explained.steps.flatMap((step) => listStepRows(step, texts, money));
  return (
    <Knot title={texts.price} value={<PriceOwner line={line} />}>
      {rows.length === 0 ? texts.noUsageCharged : <WrittenSum rows={rows} {...(rows.length > 1 ? { total } : {})} />}
      {steps.length > 0 && <WrittenSum rows={steps} />}
    </Knot>
  );
}

/** The plan that owns the price, with a link to the price. */
function PriceOwner({ line }: { line: InvoiceLine }): ReactNode {
  const { plan_display_name: name, entity_type, entity_id: plan_id, price_id } = line;
  if (!name) return null;
  if (entity_type !== 'plan' || !plan_id || !price_id)
    return (
      <span className="muted">
        <bdi>{name}</bdi>
      </span>
    );
  return (
    <Link
      from="/env/$environment_id"
      to="/env/$environment_id/plans/$plan_id/prices/$price_id"
      params={({ environment_id }) => ({ environment_id, plan_id, price_id })}
      search={({ zone }) => ({ zone })}
      className="muted"
    >
      <bdi>{name}</bdi>
    </Link>
  );
}

export function listStepRows(
  step: ExplainedStep,
  texts: ReturnType<typeof useTexts<typeof TEXTS.en>>,
  money: (amount: string) => string,
): SumRow[] {
  switch (step.kind) {
    case 'share':
      return [{ key: 'share', what: texts.share(step.share), amount: '' }];
    case 'chain':
      return [
        { key: 'until_end', what: texts.chainEnd, amount: money(step.until_end) },
        { key: 'until_begin', what: texts.chainBegin, amount: `−${money(step.until_begin)}` },
      ];
    case 'edited':
      return [];
    case 'less':
      return [{ key: 'less', what: texts.less, amount: `−${money(step.amount)}` }];
    default:
      return [
        { key: step.kind, what: step.kind === 'true_up' ? texts.trueUp : texts[step.kind], amount: money(step.amount) },
      ];
  }
}

type LineMeter = components['schemas']['MeterResponse'];

function UsageKnot({
  line,
  explained,
  meter,
}: ExplainedProps & {
  meter: Pick<LineMeter, 'id' | 'event_name' | 'aggregation' | 'filters'> | undefined;
}): ReactNode {
  const texts = useTexts(TEXTS);
  const measures = useTexts(MEASURES);
  const language = useLanguage();
  return (
    <Knot title={texts.usage} value={<Quantity value={line.computed_from?.quantity ?? line.quantity} />}>
      {meter && (
        <p>
          {measures[meter.aggregation.type]}{' '}
          {(meter.aggregation.field || meter.aggregation.expression) && (
            <code>{meter.aggregation.field || meter.aggregation.expression}</code>
          )}{' '}
          {texts.overAll} <code>{meter.event_name}</code> {texts.eventsWord}
          {(meter.filters ?? []).map(({ key, values }) => (
            <span key={key}>
              , <code>{`${key} = ${values.join(' | ')}`}</code>
            </span>
          ))}
        </p>
      )}
      {explained?.free_units && <p>{texts.free(formatQuantity(language, explained.free_units))}</p>}
    </Knot>
  );
}

function EventsKnot({ line, ends }: { line: InvoiceLine; ends: ReturnType<typeof useLineEnds> }): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  const mayNotRead = useMayNot('event:read');
  const count = line.computed_from?.event_count;
  const { first, last } = ends;
  return (
    <Knot title={texts.events} value={count === null || count === undefined ? undefined : formatCount(language, count)}>
      {count === 0 && texts.noEvents}
      {mayNotRead}
      {first && (
        <div>
          {texts.firstEvent} <Day at={first.timestamp} /> <ExactTime at={first.timestamp} />
        </div>
      )}
      {last && (
        <div>
          {texts.lastEvent} <Day at={last.timestamp} /> <ExactTime at={last.timestamp} />
        </div>
      )}
    </Knot>
  );
}

type ThreadFooterProps = { invoice: InvoiceRecord; line: InvoiceLine; event_name: string | undefined };

function ThreadFooter({ invoice, line, event_name }: ThreadFooterProps): ReactNode {
  const texts = useTexts(TEXTS);
  const { window_start, window_end, counted } = line.computed_from ?? {};
  const customer = counted?.customers.length === 1 ? counted.customers[0]?.external_customer_id : undefined;
  const filter = {
    ...(customer ? { customer } : {}),
    ...(event_name ? { name: event_name } : {}),
    ...(window_start && window_end ? coverInstants(window_start, window_end) : {}),
  };
  return (
    <>
      {line.meter_id && (
        <Link
          from="/env/$environment_id"
          to="/env/$environment_id/events"
          params={({ environment_id }) => ({ environment_id })}
          search={({ zone }) => ({ zone, ...filter })}
          className={buttonClass}
        >
          {texts.showEvents}
        </Link>
      )}
      {invoice.invoice_status !== 'DRAFT' && <ProofLinks invoice={invoice} />}
    </>
  );
}

/** The proof as a file, and the call that reads it. */
export function ProofLinks({ invoice }: { invoice: InvoiceRecord }): ReactNode {
  const texts = useTexts(TEXTS);
  const { copy, copied } = useClipboard({ timeout: 1500 });
  const path = `/invoices/${encodeURIComponent(invoice.id)}/proof`;
  return (
    <>
      <a className={buttonClass} href={linkTo(path)} download={`${invoice.invoice_number ?? invoice.id}-proof.json`}>
        {texts.download}
      </a>
      <button type="button" className={`${styles.choice} ${styles.far}`} onClick={() => copy(formatCurl('GET', path))}>
        {copied ? texts.copied : texts.asCurl}
      </button>
    </>
  );
}

/** Cancels a subscription now, at the end of its period or on a day, after showing the last invoice and the credits. */
import { TextInput } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { api, readData } from '../../client/client.ts';
import type { components } from '../../client/openapi.d.ts';
import { Choice } from '../../components/choice.tsx';
import { findFieldError } from '../../components/field-errors.ts';
import { Facts } from '../../components/page.tsx';
import { toMidnight } from '../../components/range.ts';
import { type SumRow, WrittenSum } from '../../components/thread.tsx';
import { formatMoney } from '../../figures/format.ts';
import { Money } from '../../figures/money.tsx';
import { Moment } from '../../figures/when.tsx';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import { isZero, negateDecimal } from '../invoices/decimals.ts';
import type { InvoiceRecord } from '../invoices/invoice.ts';
import { ChangeSheet, useChange, useCostPreview } from './change-cost.tsx';
import { CHANGE_TEXTS } from './change-texts.ts';
import { Radios } from './radios.tsx';
import { numberLines, type SubscriptionRecord } from './subscription.ts';
import styles from './subscriptions.module.css';
import { WrittenInvoice } from './written-invoice.tsx';

type CancellationBody = components['schemas']['CancelSubscriptionRequest'];
type CancellationCost = components['schemas']['PreviewCancellationResponse'];
type CancelSheetProps = { subscription: SubscriptionRecord; onClose: () => void };

export function CancelSheet({ subscription, onClose }: CancelSheetProps): ReactNode {
  const texts = useTexts(CHANGE_TEXTS);
  const [cancellation_type, setType] = useState<CancellationBody['cancellation_type']>('end_of_period');
  const [day, setDay] = useState('');
  const [policy, setPolicy] = useState<'generate_invoice' | 'skip'>('generate_invoice');
  const [proration_behavior, setProration] = useState<'create_prorations' | 'none'>('create_prorations');
  const [reason, setReason] = useState('');
  const { id, currency } = subscription;
  const isNow = cancellation_type === 'immediate';
  const isOnDay = cancellation_type === 'scheduled_date';
  const body: CancellationBody | null =
    isOnDay && day === ''
      ? null
      : {
          cancellation_type,
          ...(isOnDay ? { cancel_at: toMidnight(day) } : {}),
          ...(isNow ? { cancel_immediately_invoice_policy: policy } : {}),
          ...(cancellation_type === 'end_of_period' ? {} : { proration_behavior }),
        };
  const params = { path: { id } };
  const preview = useCostPreview<CancellationCost, CancellationBody>(
    '/subscriptions/{id}/cancel/preview',
    id,
    body,
    (cancellation) => api.POST('/subscriptions/{id}/cancel/preview', { params, body: cancellation }),
  );
  const deed = useChange(
    () =>
      readData(
        api.POST('/subscriptions/{id}/cancel', { params, body: { ...body!, ...(reason === '' ? {} : { reason }) } }),
      ),
    onClose,
  );
  return (
    <ChangeSheet
      title={texts.cancelTitle}
      fields={['cancel_at']}
      preview={preview}
      isComplete={body !== null}
      incomplete={texts.choose}
      deed={deed}
      action={isNow ? texts.cancelNow : texts.scheduleCancel}
      onClose={onClose}
      form={
        <>
          <div>
            <p className={styles.label}>{texts.when}</p>
            <Choice
              label={texts.when}
              value={cancellation_type}
              onValue={setType}
              options={[
                { value: 'end_of_period', label: texts.atEnd },
                { value: 'scheduled_date', label: texts.onDay },
                { value: 'immediate', label: texts.now },
              ]}
            />
          </div>
          {isOnDay && (
            <TextInput
              type="date"
              label={texts.day}
              description="00:00 UTC"
              required
              value={day}
              error={findFieldError(preview, 'cancel_at')}
              onChange={({ currentTarget }) => setDay(currentTarget.value)}
            />
          )}
          {isNow && (
            <Radios
              label={texts.arrears}
              value={policy}
              onValue={setPolicy}
              options={[
                ['generate_invoice', texts.invoiceArrears],
                ['skip', texts.skipArrears],
              ]}
            />
          )}
          {(isNow || isOnDay) && (
            <Radios
              label={texts.unused}
              value={proration_behavior}
              onValue={setProration}
              options={[
                ['create_prorations', texts.creditUnused],
                ['none', texts.keepUnused],
              ]}
            />
          )}
          <TextInput
            label={texts.reason}
            description={texts.reasonHint}
            value={reason}
            onChange={({ currentTarget }) => setReason(currentTarget.value)}
          />
        </>
      }
    >
      {(cost) => <CancellationPreview cost={cost} currency={currency} />}
    </ChangeSheet>
  );
}

function CancellationPreview({ cost, currency }: { cost: CancellationCost; currency: string }): ReactNode {
  const texts = useTexts(CHANGE_TEXTS);
  const language = useLanguage();
  const { effective_date, final_invoice, proration_details, total_credit_amount, cancellation_type } = cost;
  const credits: SumRow[] = proration_details.map(
    ({ line_item_id, description, original_amount, credit_amount, proration_days }) => ({
      key: line_item_id,
      what: (
        <>
          <bdi>{description}</bdi>, {texts.days(proration_days)}
        </>
      ),
      times: formatMoney(language, original_amount, null),
      amount: formatMoney(language, negateDecimal(credit_amount), null),
    }),
  );
  return (
    <>
      <Facts facts={[{ label: texts.endsOn, value: <Moment at={effective_date} /> }]} />
      <div className={styles.foot}>
        {final_invoice ? (
          <WrittenInvoice invoice={numberLines(final_invoice as unknown as InvoiceRecord)} title={texts.finalInvoice} />
        ) : (
          <p>{cancellation_type === 'immediate' ? texts.noFinalInvoice : texts.laterInvoice}</p>
        )}
      </div>
      {credits.length > 0 && (
        <div className={styles.foot}>
          <p className={styles.label}>{texts.unused}</p>
          <WrittenSum rows={credits} />
          <p className={styles.hint}>{texts.creditHint}</p>
        </div>
      )}
      {!isZero(total_credit_amount) && (
        <Facts facts={[{ label: texts.toWallet, value: <Money amount={total_credit_amount} currency={currency} /> }]} />
      )}
    </>
  );
}

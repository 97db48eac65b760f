/** Billing and payment of a new subscription: periods, end, payment terms, and the customer who pays. */
import { Select, TextInput } from '@mantine/core';
import type { ReactNode } from 'react';
import { Choice } from '../../components/choice.tsx';
import { CustomerPicker } from '../../components/customer-picker.tsx';
import { NumberInput } from '../../components/number-input.tsx';
import { useTexts } from '../../texts/texts.ts';
import { NEW_TEXTS } from './new-texts.ts';
import { Radios } from './radios.tsx';
import { SharingInput } from './sharing-input.tsx';
import { PAYMENT_TERMS, type PaymentTerms } from './subscription-draft.ts';
import type { DraftPartProps } from './subscription-form.tsx';
import styles from './subscriptions.module.css';

type PaymentPartProps = Omit<DraftPartProps, 'prices'>;

export function BillingPart({ draft, findError, set }: PaymentPartProps): ReactNode {
  const texts = useTexts(NEW_TEXTS);
  return (
    <div className={styles.form}>
      <div className={styles.pair}>
        <NumberInput
          label={texts.periodCount}
          description={texts.periodCountHint}
          value={draft.billing_period_count}
          error={findError('billing_period_count')}
          onValue={(billing_period_count) => set({ billing_period_count })}
        />
        {draft.billing_cycle === 'anniversary' && (
          <TextInput
            type="date"
            label={texts.anchor}
            description={texts.anchorHint}
            value={draft.anchor_day}
            error={findError('billing_anchor')}
            onChange={({ currentTarget }) => set({ anchor_day: currentTarget.value })}
          />
        )}
        <TextInput
          type="date"
          label={texts.end}
          description={texts.endHint}
          value={draft.end_day}
          error={findError('end_date')}
          onChange={({ currentTarget }) => set({ end_day: currentTarget.value })}
        />
        <NumberInput
          label={texts.threshold}
          description={texts.thresholdHint}
          unit={draft.currency.toUpperCase()}
          value={draft.auto_invoice_threshold}
          error={findError('auto_invoice_threshold')}
          onValue={(auto_invoice_threshold) => set({ auto_invoice_threshold })}
        />
        <Select
          label={texts.paymentTerms}
          description={texts.paymentTermsHint}
          clearable
          clearButtonProps={{ 'aria-label': texts.oneDay }}
          placeholder={texts.oneDay}
          value={draft.payment_terms === '' ? null : draft.payment_terms}
          data={PAYMENT_TERMS.map((value) => ({ value, label: texts.dueIn(value.split(' ')[0]!) }))}
          error={findError('payment_terms')}
          onChange={(value) => set({ payment_terms: (value as PaymentTerms | null) ?? '' })}
        />
      </div>
      <div>
        <p className={styles.label}>{texts.collection}</p>
        <Choice
          label={texts.collection}
          value={draft.collection_method}
          options={[
            { value: 'charge_automatically', label: texts.charged },
            { value: 'send_invoice', label: texts.sent },
          ]}
          onValue={(collection_method) => set({ collection_method })}
        />
        {findError('collection_method') && <p className={styles.error}>{findError('collection_method')}</p>}
      </div>
    </div>
  );
}

export function PayerPart({ draft, findError, set }: PaymentPartProps): ReactNode {
  const texts = useTexts(NEW_TEXTS);
  const { payer, payer_external_id, sharing_external_ids } = draft;
  const error = findError('inheritance');
  return (
    <div className={styles.form}>
      <Radios
        label={texts.payer}
        value={payer}
        onValue={(next) => set({ payer: next })}
        options={[
          ['self', texts.payerSelf],
          ['other', texts.payerOther],
          ['shared', texts.payerShared],
        ]}
      />
      {payer === 'other' && (
        <CustomerPicker
          label={texts.payingCustomer}
          external_id={payer_external_id === '' ? undefined : payer_external_id}
          error={error}
          onCustomer={(external_id) => set({ payer_external_id: external_id ?? '' })}
        />
      )}
      {payer === 'shared' && (
        <SharingInput
          label={texts.sharing}
          description={texts.sharingHint}
          value={sharing_external_ids}
          error={error}
          onValue={(external_ids) => set({ sharing_external_ids: external_ids })}
        />
      )}
    </div>
  );
}

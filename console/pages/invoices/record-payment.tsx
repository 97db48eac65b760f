/** Records a payment that came in elsewhere, such as a bank transfer. */
import { Modal, TextInput } from '@mantine/core';
import { type FormEvent, type ReactNode, useState } from 'react';
import { api, readData } from '../../client/client.ts';
import { Button } from '../../components/button.tsx';
import { findFieldError } from '../../components/field-errors.ts';
import { FormFoot, useDeed } from '../../components/form.tsx';
import { NumberInput } from '../../components/number-input.tsx';
import { Money } from '../../figures/money.tsx';
import { defineTexts, useTexts } from '../../texts/texts.ts';
import { addDecimals, compareDecimals, isZero, negateDecimal } from './decimals.ts';
import styles from './invoice.module.css';
import type { InvoiceDialogueProps } from './invoice-dialogues.tsx';

export function RecordPayment({ invoice, onDone, onClose }: InvoiceDialogueProps): ReactNode {
  const texts = useTexts(TEXTS);
  const { id, currency, amount_remaining, invoice_number } = invoice;
  const [amount, setAmount] = useState(amount_remaining);
  const [reference, setReference] = useState('');
  // One key for one dialogue: a second click records no second payment.
  const [key] = useState(() => crypto.randomUUID());
  const record = useDeed(
    () =>
      readData(
        api.POST('/payments', {
          params: { header: { 'Idempotency-Key': key } },
          body: {
            destination_type: 'INVOICE',
            destination_id: id,
            payment_method_type: 'OFFLINE',
            amount,
            currency,
            ...(reference === '' ? {} : { metadata: { reference } }),
          },
        }),
      ),
    async () => {
      await onDone();
      onClose();
    },
  );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    record.mutate(undefined);
  };
  const isUsable = amount !== '' && compareDecimals(amount, '0') > 0;
  const left = isUsable ? addDecimals([amount_remaining, negateDecimal(amount)]) : null;
  return (
    <Modal
      opened
      onClose={onClose}
      title={texts.title(invoice_number ?? id)}
      closeButtonProps={{ 'aria-label': texts.close }}
    >
      <form onSubmit={submit}>
        <div className={styles.field}>
          <NumberInput
            label={texts.amount(currency.toUpperCase())}
            value={amount}
            onValue={setAmount}
            required
            data-autofocus
            error={findFieldError(record, 'amount')}
          />
          <TextInput
            label={texts.reference}
            description={texts.referenceHint}
            value={reference}
            maxLength={200}
            error={findFieldError(record, 'metadata')}
            onChange={({ currentTarget }) => setReference(currentTarget.value)}
          />
          {left !== null && (
            <p className={styles.fact}>
              <span className="muted">
                {isZero(left) ? texts.paidInFull : left.startsWith('-') ? texts.tooMuch : texts.left}
              </span>
              {!isZero(left) && <Money amount={left.replace('-', '')} currency={currency} />}
            </p>
          )}
        </div>
        <FormFoot
          needs="payment:write"
          deed={record}
          fields={['amount', 'metadata']}
          action={texts.action}
          blocked={isUsable ? null : texts.amountFirst}
        >
          <Button onClick={onClose}>{texts.close}</Button>
        </FormFoot>
      </form>
    </Modal>
  );
}

const TEXTS = defineTexts(
  {
    title: (number: string) => `Record a payment of ${number}`,
    close: 'Close',
    amount: (currency: string) => `Amount received, ${currency}`,
    reference: 'Reference',
    referenceHint: 'Text of the transfer, for your books. It may stay empty.',
    paidInFull: 'The invoice is then paid.',
    left: 'Then still to pay',
    tooMuch: 'More than is owed: overpaid by',
    action: 'Record payment',
    amountFirst: 'First enter an amount above 0',
  },
  {
    de: {
      title: (number) => `Zahlung zu ${number} erfassen`,
      close: 'Schließen',
      amount: (currency) => `Erhaltener Betrag, ${currency}`,
      reference: 'Verwendungszweck',
      referenceHint: 'Text der Überweisung, für Ihre Bücher. Er darf leer bleiben.',
      paidInFull: 'Die Rechnung ist dann bezahlt.',
      left: 'Danach noch zu zahlen',
      tooMuch: 'Mehr als geschuldet: überzahlt um',
      action: 'Zahlung erfassen',
      amountFirst: 'Zuerst einen Betrag über 0 eingeben',
    },
  },
);

/** From the subtotal to what is to be paid. All amounts are those of the invoice. */
import type { ReactNode } from 'react';
import { formatMoney, formatQuantity } from '../../figures/format.ts';
import { Money, WhyButton } from '../../figures/money.tsx';
import { type Language, useLanguage, useTexts } from '../../texts/texts.ts';
import { isZero, negateDecimal } from './decimals.ts';
import styles from './invoice.module.css';
import type { InvoiceRecord } from './invoice.ts';
import { TEXTS } from './texts.ts';

type InvoiceTotalsProps = { invoice: InvoiceRecord; onAsk: () => void };

export function InvoiceTotals({ invoice, onAsk }: InvoiceTotalsProps): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  const { currency, invoice_status } = invoice;
  const isOwed = invoice_status === 'FINALIZED';
  const last = isOwed ? invoice.amount_remaining : invoice.total;
  return (
    <dl className={styles.totals}>
      {listTotals(invoice, texts, language).map(({ key, label, amount }) => (
        <div key={key}>
          <dt>{label}</dt>
          <dd>
            <Money amount={amount} currency={currency} isBare />
          </dd>
        </div>
      ))}
      <div className={styles.sum}>
        <dt>{isOwed ? texts.toPay : texts.total}</dt>
        <dd>
          <WhyButton why={texts.whyTotal(formatMoney(language, last, currency))} onOpen={onAsk}>
            <Money amount={last} currency={currency} />
          </WhyButton>
        </dd>
      </div>
    </dl>
  );
}

export type TotalRow = { readonly key: string; readonly label: ReactNode; readonly amount: string };

export function listTotals(
  invoice: InvoiceRecord,
  texts: ReturnType<typeof useTexts<typeof TEXTS.en>>,
  language: Language,
): TotalRow[] {
  const coupons = (invoice.coupon_applications ?? []).map(
    ({ id, coupon_snapshot, discount_percentage, discounted_amount }) => ({
      key: id,
      label: (
        <>
          <bdi>{(coupon_snapshot as { name?: string } | null)?.name ?? texts.discount}</bdi>
          {discount_percentage && !isZero(discount_percentage) && ` ${formatQuantity(language, discount_percentage)} %`}
        </>
      ),
      amount: negateDecimal(discounted_amount),
    }),
  );
  const discount = { key: 'discount', label: texts.discount, amount: negateDecimal(invoice.total_discount) };
  const taxes = (invoice.taxes ?? []).map(({ id, tax_rate, tax_behavior, tax_amount }) => ({
    key: id,
    label: (
      <>
        <bdi>{tax_rate?.name ?? texts.tax}</bdi>
        {tax_rate?.percentage_value && ` ${formatQuantity(language, tax_rate.percentage_value)} %`}
        {tax_behavior === 'inclusive' && `, ${texts.included}`}
      </>
    ),
    amount: tax_amount,
  }));
  const tax = { key: 'tax', label: texts.tax, amount: invoice.total_tax };
  const optional = (key: string, label: string, amount: string) => (isZero(amount) ? [] : [{ key, label, amount }]);
  const afterwards = [
    ...optional('credited', texts.credited, negateDecimal(invoice.adjustment_amount)),
    ...optional('paid', texts.paidSoFar, negateDecimal(invoice.amount_paid)),
    ...optional('refunded', texts.refunded, invoice.refunded_amount),
  ];
  const between = [
    ...(coupons.length > 0 ? coupons : isZero(invoice.total_discount) ? [] : [discount]),
    ...optional('credits', texts.prepaidCredits, negateDecimal(invoice.total_prepaid_credits_applied)),
    ...(taxes.length > 0 ? taxes : isZero(invoice.total_tax) ? [] : [tax]),
  ];
  const isTotalApart = between.length > 0 && afterwards.length > 0;
  return [
    { key: 'subtotal', label: texts.subtotal, amount: invoice.subtotal },
    ...between,
    ...(isTotalApart ? [{ key: 'total', label: texts.total, amount: invoice.total }] : []),
    ...afterwards,
  ];
}

/** Why an invoice comes to its total: lines, discounts, credits and tax, payments, proof. */
import type { ReactNode } from 'react';
import { SideSheet } from '../../../components/side-sheet.tsx';
import { Knot, type SumRow, Thread, WrittenSum } from '../../../components/thread.tsx';
import { formatMoney } from '../../../figures/format.ts';
import { Money, WhyButton } from '../../../figures/money.tsx';
import { Period } from '../../../figures/when.tsx';
import { useLanguage, useTexts } from '../../../texts/texts.ts';
import type { InvoiceRecord } from '../invoice.ts';
import { TEXTS as PAGE_TEXTS } from '../texts.ts';
import { listTotals } from '../totals.tsx';
import { ProofLinks } from './line-thread.tsx';
import { ProofKnot } from './proof-knot.tsx';
import { TEXTS } from './texts.ts';

type TotalThreadProps = { invoice: InvoiceRecord; onAsk: (why: string) => void; onClose: () => void };

export function TotalThread({ invoice, onAsk, onClose }: TotalThreadProps): ReactNode {
  const texts = useTexts(TEXTS);
  const pageTexts = useTexts(PAGE_TEXTS);
  const language = useLanguage();
  const { currency, period_start, period_end, customer, customer_id, invoice_status } = invoice;
  const money = (amount: string) => formatMoney(language, amount, null);
  const isOwed = invoice_status === 'FINALIZED';
  const last = isOwed ? invoice.amount_remaining : invoice.total;
  const lines: SumRow[] = (invoice.line_items ?? []).map(({ id, display_name, meter_display_name, amount }) => ({
    key: id,
    what: <bdi>{display_name || meter_display_name || id}</bdi>,
    amount: (
      <WhyButton why={texts.why(money(amount))} onOpen={() => onAsk(id)}>
        {money(amount)}
      </WhyButton>
    ),
  }));
  const [, ...adjustments] = listTotals(invoice, pageTexts, language);
  const rows: SumRow[] = adjustments.map(({ key, label, amount }) => ({ key, what: label, amount: money(amount) }));
  return (
    <SideSheet
      title={texts.why(formatMoney(language, last, currency))}
      subtitle={
        <>
          <bdi>{customer?.name || customer?.external_id || customer_id}</bdi>
          {period_start && period_end && (
            <>
              {', '}
              <Period start={period_start} end={period_end} />
            </>
          )}
        </>
      }
      onClose={onClose}
      footer={invoice_status === 'DRAFT' ? undefined : <ProofLinks invoice={invoice} />}
    >
      <Thread>
        <Knot title={isOwed ? texts.toPay : texts.total} value={<Money amount={last} currency={currency} />} isFilled />
        <Knot title={texts.lines} value={<Money amount={invoice.subtotal} currency={currency} isBare />}>
          {lines.length === 0 ? pageTexts.noLines : <WrittenSum rows={lines} />}
        </Knot>
        {rows.length > 0 && (
          <Knot title={texts.adjustments}>
            <WrittenSum
              rows={rows}
              total={{ key: 'last', what: isOwed ? texts.toPay : texts.total, amount: money(last) }}
            />
          </Knot>
        )}
        <ProofKnot invoice={invoice} line={null} />
      </Thread>
    </SideSheet>
  );
}

/** An invoice that is not written yet, as a thread: its lines with their sums, then discounts and tax. */
import type { ReactNode } from 'react';
import { Knot, type SumRow, Thread, WrittenSum } from '../../components/thread.tsx';
import { formatMoney, formatQuantity } from '../../figures/format.ts';
import { Money } from '../../figures/money.tsx';
import { Period } from '../../figures/when.tsx';
import { defineTexts, useLanguage, useTexts } from '../../texts/texts.ts';
import type { InvoiceLine, InvoiceRecord } from '../invoices/invoice.ts';
import { TEXTS as INVOICE_TEXTS } from '../invoices/texts.ts';
import { explainLine } from '../invoices/thread/explain-line.ts';
import { listStepRows } from '../invoices/thread/line-thread.tsx';
import { TEXTS as THREAD_TEXTS } from '../invoices/thread/texts.ts';
import { formatTimes } from '../invoices/thread/thread-figures.ts';
import { listTotals } from '../invoices/totals.tsx';

type WrittenInvoiceProps = { invoice: InvoiceRecord; title: ReactNode };

export function WrittenInvoice({ invoice, title }: WrittenInvoiceProps): ReactNode {
  const texts = useTexts(TEXTS);
  const totals = useTexts(INVOICE_TEXTS);
  const language = useLanguage();
  const lines = invoice.line_items ?? [];
  const rows = listTotals(invoice, totals, language);
  const { currency, total } = invoice;
  return (
    <Thread>
      <Knot title={title} value={<Money amount={total} currency={currency} />} isFilled />
      {lines.map((line, index) => (
        <WrittenLine key={`${line.id}-${index}`} line={line} />
      ))}
      {rows.length > 1 && (
        <Knot title={texts.adjustments}>
          <WrittenSum
            rows={rows.map(({ key, label, amount }) => ({
              key,
              what: label,
              amount: formatMoney(language, amount, null),
            }))}
            total={{ key: 'total', what: totals.total, amount: formatMoney(language, total, null) }}
          />
        </Knot>
      )}
    </Thread>
  );
}

function WrittenLine({ line }: { line: InvoiceLine }): ReactNode {
  const texts = useTexts(TEXTS);
  const threads = useTexts(THREAD_TEXTS);
  const language = useLanguage();
  const explained = explainLine(line);
  const money = (amount: string) => formatMoney(language, amount, null);
  const { display_name, meter_display_name, price_id, period_start, period_end, meter_id } = line;
  const parts: SumRow[] = (explained?.parts ?? []).map((part) => ({
    key: part.key,
    what: threads[part.place === 'all' ? 'allUnits' : part.place](formatQuantity(language, part.units)),
    times: formatTimes(language, part),
    amount: money(part.amount),
  }));
  const steps = (explained?.steps ?? []).flatMap((step) => listStepRows(step, threads, money));
  return (
    <Knot
      title={<bdi>{display_name || meter_display_name || price_id}</bdi>}
      value={<Money amount={line.amount} currency={line.currency} isBare />}
    >
      <Period start={period_start} end={period_end} />
      {parts.length === 0 && meter_id && <p>{texts.noUsage}</p>}
      {parts.length > 0 && <WrittenSum rows={[...parts, ...steps]} />}
    </Knot>
  );
}

const TEXTS = defineTexts(
  { adjustments: 'Discounts and tax', noUsage: 'no usage yet' },
  { de: { adjustments: 'Rabatte und Steuern', noUsage: 'noch keine Nutzung' } },
);

import type { ReactNode } from 'react';
import { type Column, DataTable } from '../../components/data-table.tsx';
import { Section, Sheet } from '../../components/page.tsx';
import { formatMoney, formatQuantity } from '../../figures/format.ts';
import { Money, Quantity, WhyButton } from '../../figures/money.tsx';
import { Period } from '../../figures/when.tsx';
import { type Language, useLanguage, useTexts } from '../../texts/texts.ts';
import styles from './invoice.module.css';
import type { InvoiceLine, InvoiceRecord } from './invoice.ts';
import { formatLineReason } from './line-reason.ts';
import { PriceLabel } from './price-label.tsx';
import { TEXTS } from './texts.ts';

type InvoiceLinesProps = {
  invoice: InvoiceRecord;
  why: string | undefined;
  onAsk: (why: string) => void;
  /** Heading instead of that of an invoice. */
  title?: string;
};

export function InvoiceLines({ invoice, why, onAsk, title }: InvoiceLinesProps): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  const lines = invoice.line_items ?? [];
  return (
    <Section title={title ?? texts.lines} hint={lines.length > 0 ? texts.linesHint : undefined}>
      {lines.length === 0 ? (
        <Sheet>
          <p className={styles.none}>{texts.noLines}</p>
        </Sheet>
      ) : (
        <DataTable
          label={texts.lines}
          columns={listLineColumns({ texts, language, onAsk, invoice })}
          rows={lines}
          rowKey={({ id }) => id}
          openKey={why ?? null}
          onOpen={({ id }) => onAsk(id)}
        />
      )}
    </Section>
  );
}

function LineReason({ computed_from, currency }: Pick<InvoiceLine, 'computed_from' | 'currency'>): ReactNode {
  const reason = formatLineReason(computed_from, useLanguage(), currency);
  return reason && <span className="label"> · {reason}</span>;
}

type LineColumnsInput = Pick<InvoiceLinesProps, 'invoice' | 'onAsk'> & {
  texts: ReturnType<typeof useTexts<typeof TEXTS.en>>;
  language: Language;
};

function listLineColumns({ texts, language, onAsk, invoice }: LineColumnsInput): Column<InvoiceLine>[] {
  return [
    {
      key: 'description',
      header: texts.description,
      width: 'minmax(120px, 3fr)',
      narrow: 'first',
      cell: ({ display_name, meter_display_name, id, computed_from, period_start, period_end }) => (
        <>
          <bdi>{display_name || meter_display_name || id}</bdi>
          {period_start &&
            period_end &&
            (period_start !== invoice.period_start || period_end !== invoice.period_end) && (
              <span className="label">
                {' · '}
                <Period start={period_start} end={period_end} />
              </span>
            )}
          <LineReason computed_from={computed_from} currency={invoice.currency} />
        </>
      ),
    },
    {
      key: 'quantity',
      header: texts.quantity,
      width: 'minmax(104px, 1.2fr)',
      isFigure: true,
      cell: ({ id, quantity, meter_id }) =>
        meter_id ? (
          <WhyButton why={texts.whyLine(formatQuantity(language, quantity))} onOpen={() => onAsk(id)}>
            <Quantity value={quantity} />
          </WhyButton>
        ) : (
          <Quantity value={quantity} />
        ),
    },
    {
      key: 'price',
      header: texts.price,
      width: 'minmax(136px, 1.4fr)',
      isFigure: true,
      cell: (line) => <PriceLabel line={line} />,
    },
    {
      key: 'amount',
      header: texts.amount,
      width: '108px',
      isFigure: true,
      narrow: 'end',
      cell: ({ id, amount, currency }) => (
        <WhyButton why={texts.whyLine(formatMoney(language, amount, null))} onOpen={() => onAsk(id)}>
          <Money amount={amount} currency={currency} isBare />
        </WhyButton>
      ),
    },
  ];
}

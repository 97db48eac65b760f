/** Why a line of the next invoice costs what it costs: amount, price with its sum, usage. */
import type { ReactNode } from 'react';
import { useGet } from '../../client/queries.ts';
import { SideSheet } from '../../components/side-sheet.tsx';
import { Knot, Thread, WrittenSum } from '../../components/thread.tsx';
import { formatMoney, formatQuantity } from '../../figures/format.ts';
import { Money, Quantity } from '../../figures/money.tsx';
import { Period } from '../../figures/when.tsx';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import type { InvoiceLine } from '../invoices/invoice.ts';
import { explainLine } from '../invoices/thread/explain-line.ts';
import { TEXTS } from './texts.ts';

export function LineWhy({ line, onClose }: { line: InvoiceLine; onClose: () => void }): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  const meter = useGet('/meters/{id}', { path: { id: line.meter_id ?? '' } }, { enabled: Boolean(line.meter_id) });
  const explained = explainLine(line);
  return (
    <SideSheet
      title={texts.why(formatMoney(language, line.amount, null))}
      subtitle={
        <>
          <bdi>{line.display_name || line.meter_display_name}</bdi>
          {', '}
          <Period start={line.period_start} end={line.period_end} />
        </>
      }
      onClose={onClose}
    >
      <Thread>
        <Knot title={texts.whyAmount} value={<Money amount={line.amount} currency={line.currency} />} isFilled />
        {explained && (
          <Knot title={texts.whyPrice}>
            <WrittenSum
              rows={explained.parts.map(({ key, units, unit_amount, flat_amount, amount }) => ({
                key,
                what: texts.whyUnits(formatQuantity(language, units)),
                times: `× ${formatMoney(language, unit_amount, null)}${flat_amount ? ` + ${formatMoney(language, flat_amount, null)} ${texts.flat}` : ''}`,
                amount: formatMoney(language, amount, null),
              }))}
            />
          </Knot>
        )}
        <Knot
          title={texts.whyUsage}
          value={<Quantity value={line.computed_from?.quantity ?? line.quantity} />}
          isFilled={!meter.data}
        >
          {meter.data && (
            <>
              <bdi>{meter.data.name}</bdi>, <code>{meter.data.event_name}</code>
            </>
          )}
        </Knot>
      </Thread>
    </SideSheet>
  );
}

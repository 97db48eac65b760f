/** Why usage costs so much: the line items that charge for it, each with its usage and its exact cost. */
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { type DayRange, toInstants } from '../../components/range.ts';
import { RecordTools } from '../../components/record-tools.tsx';
import { SideSheet } from '../../components/side-sheet.tsx';
import { Knot, type SumRow, Thread, WrittenSum } from '../../components/thread.tsx';
import { formatMoney, formatQuantity } from '../../figures/format.ts';
import { Money } from '../../figures/money.tsx';
import { Period } from '../../figures/when.tsx';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import type { Analytics } from './usage-queries.ts';
import { USAGE_TEXTS } from './usage-texts.ts';

const FROM = '/env/$environment_id/usage';

type CostThreadProps = { analytics: Analytics; range: DayRange; onClose: () => void };

export function CostThread({ analytics, range, onClose }: CostThreadProps): ReactNode {
  const texts = useTexts(USAGE_TEXTS);
  const language = useLanguage();
  const { totals, items } = analytics;
  const { start_time, end_time } = toInstants(range);
  const first = totals[0];
  const unbilled = items.filter(({ sub_line_item_id }) => sub_line_item_id === null);
  return (
    <SideSheet
      title={first?.total_cost ? texts.why(formatMoney(language, first.total_cost, first.currency)) : texts.cost}
      subtitle={<Period start={start_time} end={end_time} />}
      onClose={onClose}
    >
      <Thread>
        {totals.map(({ currency, total_cost }) => {
          const charged = items.filter((item) => item.sub_line_item_id !== null && item.currency === currency);
          const rows: SumRow[] = charged.map((item) => ({
            key: `${item.sub_line_item_id}`,
            what: (
              <Link
                from={FROM}
                to="/env/$environment_id/subscriptions/$subscription_id"
                params={{ subscription_id: item.subscription_id ?? '' }}
              >
                <bdi>{item.external_customer_id}</bdi>
                {item.plan && (
                  <>
                    , <bdi>{item.plan.name}</bdi>
                  </>
                )}
              </Link>
            ),
            times: formatQuantity(language, item.total_usage),
            amount: item.total_cost === null ? '–' : formatMoney(language, item.total_cost, null),
          }));
          return (
            <Knot key={currency} title={texts.cost} value={<Money amount={total_cost} currency={currency} />} isFilled>
              {texts.lineItems}
              <WrittenSum
                rows={rows}
                {...(total_cost === null
                  ? {}
                  : {
                      total: {
                        key: 'total',
                        what: currency.toUpperCase(),
                        amount: formatMoney(language, total_cost, null),
                      },
                    })}
              />
            </Knot>
          );
        })}
        <Knot title={texts.prices}>{texts.pricesHint}</Knot>
        {unbilled.length > 0 && (
          <Knot title={texts.unbilled} isFilled>
            <WrittenSum
              rows={unbilled.map((item) => ({
                key: `${item.external_customer_id}${JSON.stringify(item.properties)}`,
                what: <bdi>{item.external_customer_id}</bdi>,
                amount: formatQuantity(language, item.total_usage),
              }))}
            />
          </Knot>
        )}
      </Thread>
      <RecordTools record={analytics} path="/events/analytics" />
    </SideSheet>
  );
}

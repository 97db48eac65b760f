/** Usage of a line by day, as the meter counts it now. */
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Bars } from '../../charts/bars.tsx';
import { api } from '../../client/client.ts';
import { postQuery, useGet } from '../../client/queries.ts';
import { Section, Sheet } from '../../components/page.tsx';
import { Loaded } from '../../components/states.tsx';
import { formatDay } from '../../figures/format.ts';
import { Period, useZone } from '../../figures/when.tsx';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import styles from './invoice.module.css';
import { type InvoiceLine, listDays } from './invoice.ts';
import { TEXTS } from './texts.ts';

export function LineUsage({ line }: { line: InvoiceLine }): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  const zone = useZone();
  const from = line.computed_from;
  const meter = useGet('/meters/{id}', { path: { id: line.meter_id! } });
  const customers = from?.counted?.customers ?? [];
  const [customer] = customers;
  const start_time = from?.window_start;
  const end_time = from?.window_end;
  const aggregation_type = meter.data?.aggregation.type;
  const body =
    customer && start_time && end_time && aggregation_type
      ? {
          meter_id: line.meter_id!,
          external_customer_id: customer.external_customer_id,
          aggregation_type,
          window_size: 'DAY' as const,
          start_time,
          end_time,
        }
      : null;
  const usage = useQuery({
    ...postQuery('/meter-usage/query', body, () => api.POST('/meter-usage/query', { body: body! })),
    enabled: body !== null,
  });
  if (!start_time || !end_time || !customer) return null;
  const name = line.display_name || line.meter_display_name || meter.data?.name || line.id;
  // A level is a quantity of the whole period, so the days do not add up to it; the customers of a hierarchy are named.
  return (
    <Section
      title={texts.usageOf(name)}
      hint={customers.length > 1 ? customer.external_customer_id : undefined}
      end={
        <span className="label">
          <Period start={start_time} end={end_time} />, {zone}
        </span>
      }
    >
      <Loaded query={usage} rows={3}>
        {({ points }) =>
          points && points.length > 0 ? (
            <Bars
              label={texts.usageOf(name)}
              points={points.map(({ timestamp, value }) => ({ at: timestamp, value }))}
              slots={listDays(start_time, end_time)}
              unit={name}
              showAt={(at) => formatDay(language, at, 'UTC')}
            />
          ) : (
            <Sheet>
              <p className={styles.none}>{texts.noUsage}</p>
            </Sheet>
          )
        }
      </Loaded>
    </Section>
  );
}

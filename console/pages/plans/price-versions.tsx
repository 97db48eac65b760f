/** The versions of a price: each begins where the one before it ends. */
import { useNavigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useGet } from '../../client/queries.ts';
import { Chip } from '../../components/chip.tsx';
import { DataTable } from '../../components/data-table.tsx';
import { Section } from '../../components/page.tsx';
import { Moment } from '../../figures/when.tsx';
import { useTexts } from '../../texts/texts.ts';
import type { PlanPrice, StoredPrice } from './plan-queries.ts';
import { PriceRate } from './price-rate.tsx';
import { PRICE_TEXTS } from './price-texts.ts';

const FROM = '/env/$environment_id/plans/$plan_id/prices/$price_id';

export function PriceVersions({ price }: { price: StoredPrice }): ReactNode {
  const texts = useTexts(PRICE_TEXTS);
  const navigate = useNavigate({ from: FROM });
  const root = price.parent_price_id || price.id;
  const first = useGet('/prices/{id}', { path: { id: root } });
  const later = useGet('/prices', {
    query: { parent_price_id: root, allow_expired_prices: true, entity_type: 'PLAN', limit: 100 } as never,
  });
  const versions = [first.data, ...(later.data?.items ?? [])]
    .filter((version) => version !== undefined)
    .sort((a, b) => (b.start_date ?? '').localeCompare(a.start_date ?? '')) as PlanPrice[];
  if (versions.length < 2) return null;
  return (
    <Section title={texts.versions}>
      <DataTable<PlanPrice>
        label={texts.versions}
        rows={versions}
        rowKey={({ id }) => id}
        openKey={price.id}
        onOpen={({ id }) => void navigate({ params: (old) => ({ ...old, price_id: id }) })}
        columns={[
          {
            key: 'rate',
            header: texts.price,
            width: 'minmax(180px, 2fr)',
            narrow: 'first',
            cell: (version) => <PriceRate price={version} />,
          },
          {
            key: 'from',
            header: texts.validFrom,
            width: '180px',
            cell: ({ start_date }) => <Moment at={start_date} />,
          },
          { key: 'to', header: texts.validTo, width: '180px', cell: ({ end_date }) => <Moment at={end_date} /> },
          {
            key: 'this',
            header: <span className="visually-hidden">{texts.thisVersion}</span>,
            narrow: 'end',
            cell: ({ id }) => id === price.id && <Chip>{texts.thisVersion}</Chip>,
          },
        ]}
      />
    </Section>
  );
}

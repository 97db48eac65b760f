/** The values of a split with their usage, their share, their events and their cost. Each row is one answer of the API. */
import type { ReactNode } from 'react';
import { findColour, SERIES_MAX, toPlace } from '../../charts/series.ts';
import { Button } from '../../components/button.tsx';
import { type Column, DataTable } from '../../components/data-table.tsx';
import { Loading } from '../../components/states.tsx';
import { formatCount } from '../../figures/format.ts';
import { Money, Quantity, Unknown } from '../../figures/money.tsx';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import { compareDecimals } from '../invoices/decimals.ts';
import styles from './usage.module.css';
import { computeChange, computeShare, formatPercent } from './usage-figures.ts';
import type { MeterUsage, SplitRow, UsageSplit } from './usage-queries.ts';
import { USAGE_TEXTS } from './usage-texts.ts';

/** Number of further values that one click adds. */
const MORE_VALUES = 24;

type SplitTableProps = {
  split: UsageSplit;
  name: string;
  total: MeterUsage;
  isAdditive: boolean;
  beforeName: string | null;
  /** A customer pays for the row alone; a value of a property shares its tiers with the others. */
  isOfCustomers: boolean;
  onMore: (values: number) => void;
};

export function SplitTable(props: SplitTableProps): ReactNode {
  const { split, name, total, isAdditive, beforeName, isOfCustomers, onMore } = props;
  const texts = useTexts(USAGE_TEXTS);
  const language = useLanguage();
  const rows = split.rows.toSorted((left, right) =>
    left.usage && right.usage ? compareDecimals(right.usage.value, left.usage.value) : 0,
  );
  if (rows.length === 0 && split.isPending) return <Loading rows={4} />;
  const columns: Column<SplitRow>[] = [
    {
      key: 'value',
      header: name,
      width: 'minmax(110px, 1.2fr)',
      narrow: 'first',
      cell: ({ value }) => <bdi className="mono">{value}</bdi>,
    },
    {
      key: 'usage',
      header: texts.quantity,
      width: 'minmax(100px, 1fr)',
      isFigure: true,
      narrow: 'end',
      cell: ({ usage }) => <Quantity value={usage?.value} />,
    },
  ];
  if (isAdditive)
    columns.push(
      {
        key: 'share',
        header: texts.share,
        width: '76px',
        isFigure: true,
        cell: ({ usage }) => {
          const share = usage && computeShare(usage.value, total.value);
          return share ? formatPercent(language, share) : <Unknown />;
        },
      },
      {
        key: 'bar',
        header: <span className="visually-hidden">{texts.share}</span>,
        width: 'minmax(80px, 1.2fr)',
        narrow: 'hidden',
        cell: (row) => <ShareBar row={row} total={total} index={rows.indexOf(row)} />,
      },
    );
  columns.push(
    {
      key: 'events',
      header: texts.events,
      width: '92px',
      isFigure: true,
      narrow: 'hidden',
      cell: ({ usage }) => (usage ? formatCount(language, usage.event_count) : <Unknown />),
    },
    {
      key: 'cost',
      header: isOfCustomers ? texts.cost : <span title={texts.costAloneHint}>{texts.costAlone}</span>,
      width: 'minmax(110px, 1fr)',
      isFigure: true,
      cell: ({ cost }) => {
        const totals = cost?.totals ?? [];
        return totals.length === 0 ? (
          <Unknown />
        ) : (
          totals.map(({ currency, total_cost }) => (
            <div key={currency}>
              <Money amount={total_cost} currency={currency} />
            </div>
          ))
        );
      },
    },
  );
  if (beforeName !== null)
    columns.push({
      key: 'before',
      header: <span title={beforeName}>{texts.versusBefore}</span>,
      width: '92px',
      isFigure: true,
      narrow: 'second',
      cell: ({ usage, before }) => {
        const change = usage && before ? computeChange(usage.value, before.value) : null;
        return change === null ? <Unknown /> : formatPercent(language, change, { isChange: true });
      },
    });
  const { left_out } = split;
  const more = Math.min(left_out, MORE_VALUES);
  return (
    <DataTable<SplitRow>
      label={name}
      rows={rows}
      rowKey={({ value }) => value}
      columns={columns}
      footer={
        left_out > 0 || !isOfCustomers ? (
          <div className={styles.foot}>
            {!isOfCustomers && <p>{texts.costAloneHint}</p>}
            {left_out > 0 && (
              <p>
                {texts.leftOut(formatCount(language, left_out))}{' '}
                <Button onClick={() => onMore(rows.length + more)}>
                  {texts.showMore(formatCount(language, more))}
                </Button>
              </p>
            )}
          </div>
        ) : undefined
      }
    />
  );
}

function ShareBar({ row, total, index }: { row: SplitRow; total: MeterUsage; index: number }): ReactNode {
  const share = row.usage && computeShare(row.usage.value, total.value);
  const width = Math.max(0, Math.min(100, share ? toPlace(share) : 0));
  return (
    <span className={styles.track} aria-hidden="true">
      <i style={{ width: `${width}%`, background: index < SERIES_MAX ? findColour(index) : 'var(--ink-3)' }} />
    </span>
  );
}

/** A chart with its figures as a table behind a toggle: a drawing has no words, and its places are not exact. */
import { type ReactNode, useId, useState } from 'react';
import { Quantity } from '../figures/money.tsx';
import { defineTexts, useTexts } from '../texts/texts.ts';
import styles from './charts.module.css';
import type { ChartSeries } from './series.ts';

type ChartTableProps = {
  label: string;
  series: readonly ChartSeries[];
  showAt: (at: string) => string;
  /** Shows a value; without it a value is a quantity. */
  showValue?: (value: string) => ReactNode;
  children: ReactNode;
};

export function ChartTable({ label, series, showAt, showValue, children }: ChartTableProps): ReactNode {
  const texts = useTexts(TEXTS);
  const [isTable, setTable] = useState(false);
  const id = useId();
  const instants = [...new Set(series.flatMap(({ points }) => points.map(({ at }) => at)))].sort();
  const values = series.map(({ points }) => new Map(points.map(({ at, value }) => [at, value])));
  return (
    <figure className={styles.chart} aria-label={label}>
      <button
        type="button"
        className={styles.toggle}
        aria-expanded={isTable}
        aria-controls={id}
        onClick={() => setTable(!isTable)}
      >
        {isTable ? texts.chart : texts.table}
      </button>
      <div id={id}>
        {isTable ? (
          <div className={styles.scroll} tabIndex={0} role="region" aria-label={label}>
            <table className={styles.table}>
              <thead>
                <tr>
                  <th scope="col">{texts.at}</th>
                  {series.map((each) => (
                    <th key={each.key} scope="col">
                      {each.label}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {instants.map((at) => (
                  <tr key={at}>
                    <th scope="row">{showAt(at)}</th>
                    {series.map((each, index) => {
                      const value = values[index]!.get(at);
                      return (
                        <td key={each.key}>
                          {value !== undefined && showValue ? showValue(value) : <Quantity value={value} />}
                        </td>
                      );
                    })}
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        ) : (
          children
        )}
      </div>
    </figure>
  );
}

const TEXTS = defineTexts(
  { table: 'as a table', chart: 'as a chart', at: 'Time' },
  { de: { table: 'als Tabelle', chart: 'als Diagramm', at: 'Zeit' } },
);

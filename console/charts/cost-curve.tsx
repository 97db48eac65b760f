/** The cost of a quantity under a price: a line through the points that the service has priced, with a mark at the chosen quantity. */
import type { ReactNode } from 'react';
import { formatAxis, formatMoney, formatQuantity } from '../figures/format.ts';
import { useLanguage } from '../texts/texts.ts';
import styles from './charts.module.css';
import { type CurvePoint, findAxisMax, toPlace } from './series.ts';

type CostCurveProps = { label: string; points: readonly CurvePoint[]; chosen?: CurvePoint | null; currency: string };

const WIDTH = 420;
const HEIGHT = 200;
const TICKS = [0, 1, 2, 3];

export function CostCurve({ label, points, chosen, currency }: CostCurveProps): ReactNode {
  const language = useLanguage();
  const xMax = Math.max(...points.map(({ quantity }) => toPlace(quantity)), 1);
  const yMax = findAxisMax(Math.max(...points.map(({ amount }) => toPlace(amount))));
  const x = (quantity: string) => (toPlace(quantity) / xMax) * WIDTH;
  const y = (amount: string) => HEIGHT - (toPlace(amount) / yMax) * HEIGHT;
  const line = points.map(({ quantity, amount }) => `${x(quantity).toFixed(1)},${y(amount).toFixed(1)}`).join(' L');
  return (
    <figure className={styles.curve}>
      <div className={styles.axis} aria-hidden="true">
        {formatAxis(language, yMax)} {currency.toUpperCase()}
      </div>
      <svg viewBox={`-6 -6 ${WIDTH + 12} ${HEIGHT + 12}`} width="100%" role="img" aria-label={label}>
        <path d={`M0,${HEIGHT} H${WIDTH} M0,0 H${WIDTH} M0,${HEIGHT / 2} H${WIDTH}`} stroke="var(--rule)" fill="none" />
        <path d={`M${line} L${WIDTH},${HEIGHT} L0,${HEIGHT}Z`} fill="var(--ink)" fillOpacity="0.05" />
        <path d={`M${line}`} stroke="var(--ink)" strokeWidth="1.5" fill="none" />
        {points
          .filter(({ isTierEnd }) => isTierEnd)
          .map(({ quantity, amount }) => (
            <circle
              key={quantity}
              cx={x(quantity)}
              cy={y(amount)}
              r="4"
              fill="var(--sheet)"
              stroke="var(--ink)"
              strokeWidth="1.5"
            >
              <title>{`${formatQuantity(language, quantity)}: ${formatMoney(language, amount, currency)}`}</title>
            </circle>
          ))}
        {chosen && toPlace(chosen.quantity) <= xMax && (
          <>
            <path
              d={`M${x(chosen.quantity)},${y(chosen.amount)} V${HEIGHT}`}
              stroke="var(--copper)"
              strokeDasharray="2 3"
            />
            <circle cx={x(chosen.quantity)} cy={y(chosen.amount)} r="4.5" fill="var(--copper)" />
          </>
        )}
      </svg>
      <div className={styles.ends} aria-hidden="true">
        {TICKS.map((tick) => (
          <span key={tick}>{formatAxis(language, (xMax * tick) / (TICKS.length - 1))}</span>
        ))}
      </div>
    </figure>
  );
}

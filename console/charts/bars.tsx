/** Bars over time, such as the usage of a line by day. The table behind the chart has the exact figures. */
import type { ReactNode } from 'react';
import { formatAxis } from '../figures/format.ts';
import { useLanguage } from '../texts/texts.ts';
import { ChartTable } from './chart-table.tsx';
import styles from './charts.module.css';
import { type ChartPoint, findAxisMax, toPlace } from './series.ts';

const HEIGHT = 118;
const WIDTH = 700;
const GAP = 3;

type BarsProps = {
  label: string;
  points: readonly ChartPoint[];
  /** Starts of all windows of the range; one without a point stays empty. Without them each point has the next place. */
  slots?: readonly string[];
  unit?: string;
  showAt: (at: string) => string;
};

export function Bars({ label, points, slots = points.map(({ at }) => at), unit, showAt }: BarsProps): ReactNode {
  const language = useLanguage();
  const places = points.map(({ value }) => toPlace(value));
  const max = findAxisMax(Math.max(0, ...places));
  const width = WIDTH / Math.max(slots.length, 1) - GAP;
  const index = new Map(slots.map((at, slot) => [new Date(at).getTime(), slot]));
  return (
    <ChartTable label={label} series={[{ key: 'bars', label: unit ?? label, points }]} showAt={showAt}>
      <div className={styles.axis} aria-hidden="true">
        {formatAxis(language, max)}
      </div>
      <svg
        className={styles.plot}
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={label}
      >
        {places.map((place, at) => (
          <rect
            key={points[at]!.at}
            x={(index.get(new Date(points[at]!.at).getTime()) ?? at) * (width + GAP)}
            y={HEIGHT - (place / max) * HEIGHT}
            width={Math.max(width, 0.5)}
            height={(place / max) * HEIGHT}
            fill="var(--series-1)"
          >
            <title>{`${showAt(points[at]!.at)}: ${points[at]!.value}`}</title>
          </rect>
        ))}
      </svg>
      {slots.length > 0 && (
        <div className={styles.ends} aria-hidden="true">
          <span>{showAt(slots[0]!)}</span>
          <span>{showAt(slots.at(-1)!)}</span>
        </div>
      )}
    </ChartTable>
  );
}

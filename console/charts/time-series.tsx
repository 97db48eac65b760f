/**
 * Series over time: up to five, the period before as a dashed line, and marks where a price or an event changed. uPlot draws on a canvas;
 * the table behind it has the exact figures. The chart is loaded with the page that needs it.
 */
import 'uplot/dist/uPlot.min.css';
import { useResizeObserver } from '@mantine/hooks';
import { type ReactNode, useEffect, useRef } from 'react';
import uPlot from 'uplot';
import { formatAxis } from '../figures/format.ts';
import { useLanguage } from '../texts/texts.ts';
import { ChartTable } from './chart-table.tsx';
import styles from './charts.module.css';
import { type ChartMark, type ChartSeries, findColour, toPlace } from './series.ts';

const HEIGHT = 240;

type TimeSeriesProps = {
  label: string;
  series: readonly ChartSeries[];
  marks?: readonly ChartMark[];
  showAt: (at: string) => string;
  showValue?: (value: string) => ReactNode;
};

export function TimeSeries({ label, series, marks = [], showAt, showValue }: TimeSeriesProps): ReactNode {
  return (
    <ChartTable label={label} series={series} showAt={showAt} {...(showValue ? { showValue } : {})}>
      <Canvas label={label} series={series} marks={marks} showAt={showAt} />
      <ul className={styles.legend}>
        {series.map(({ key, label: name, isBefore }, index) => (
          <li key={key}>
            <i
              className={styles.swatch}
              style={{ background: isBefore ? 'var(--series-before)' : findColour(index) }}
            />
            {name}
          </li>
        ))}
        {marks.map(({ at, label: name }) => (
          <li key={`${at}${name}`}>
            ▲ {showAt(at)} {name}
          </li>
        ))}
      </ul>
    </ChartTable>
  );
}

function Canvas({ label, series, marks, showAt }: Required<Omit<TimeSeriesProps, 'showValue'>>): ReactNode {
  const language = useLanguage();
  const [observed, { width }] = useResizeObserver<HTMLDivElement>();
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = host.current;
    if (!element || width === 0) return;
    const colour = (name: string) => getComputedStyle(element).getPropertyValue(name.slice(4, -1));
    const instants = [...new Set(series.flatMap(({ points }) => points.map(({ at }) => at)))].sort();
    const columns = series.map(({ points }) => {
      const values = new Map(points.map(({ at, value }) => [at, toPlace(value)]));
      return instants.map((at) => values.get(at) ?? null);
    });
    const axis = {
      stroke: colour('var(--ink-3)'),
      grid: { stroke: colour('var(--rule)'), width: 1 },
      ticks: { show: false },
    };
    const chart = new uPlot(
      {
        width,
        height: HEIGHT,
        legend: { show: false },
        cursor: { y: false },
        axes: [axis, { ...axis, values: (_, places) => places.map((place) => formatAxis(language, place)) }],
        series: [
          {},
          ...series.map(({ label: name, isBefore }, index) => {
            const stroke = colour(isBefore ? 'var(--series-before)' : findColour(index));
            return {
              label: name,
              stroke,
              width: 1.5,
              points: { show: false },
              ...(isBefore ? { dash: [4, 4] } : { fill: `${stroke}29` }),
            };
          }),
        ],
        hooks: { draw: [(drawn) => drawMarks(drawn, marks, colour('var(--ink-2)'))] },
      },
      [instants.map((at) => new Date(at).getTime() / 1000), ...columns],
      element,
    );
    return () => chart.destroy();
  }, [series, marks, width, language]);
  const last = series[0]?.points.at(-1);
  return (
    <div ref={observed} role="img" aria-label={last ? `${label}: ${showAt(last.at)} ${last.value}` : label}>
      <div ref={host} />
    </div>
  );
}

/** A dashed line at each mark, through the whole height of the plot. */
function drawMarks(chart: uPlot, marks: readonly ChartMark[], stroke: string): void {
  const { ctx, bbox } = chart;
  ctx.save();
  ctx.strokeStyle = stroke;
  ctx.setLineDash([2, 3]);
  for (const { at } of marks) {
    const x = Math.round(chart.valToPos(new Date(at).getTime() / 1000, 'x', true));
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

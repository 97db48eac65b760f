/**
 * Series over time: up to five groups and one line of all others, the period before as a dashed line, and marks where a price or an event
 * changed. uPlot draws on a canvas; the table below it has the exact figures. The chart is loaded with the page that needs it.
 */
import 'uplot/dist/uPlot.min.css';
import { useResizeObserver } from '@mantine/hooks';
import { type ReactNode, useEffect, useRef } from 'react';
import uPlot from 'uplot';
import { formatAxis } from '../figures/format.ts';
import { useLanguage } from '../texts/texts.ts';
import { ChartTable } from './chart-table.tsx';
import styles from './charts.module.css';
import { type ChartMark, type ChartSeries, clearRepeats, findAxisMax, findStroke, toPlace } from './series.ts';

const HEIGHT = 240;
/** From this width each series has its label at its end, else there is a legend. The style sheet has the same width. */
const LABELS_MIN_WIDTH = 560;
const LABELS_WIDTH = 116;
const LABEL_HEIGHT = 15;
const FONT = '"Geist Variable", system-ui, sans-serif';

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
        {series.map((each, index) => (
          <li key={each.key} className={styles.named}>
            <i className={styles.swatch} style={{ background: findStroke(each, index) }} />
            {each.label}
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
      font: `11px ${FONT}`,
      grid: { stroke: colour('var(--rule)'), width: 1 },
      ticks: { show: false },
    };
    const hasLabels = width >= LABELS_MIN_WIDTH;
    const strokes = series.map((each, index) => colour(findStroke(each, index)));
    // The grey of the period before is too light for text.
    const inks = series.map(({ isBefore }, index) => (isBefore ? colour('var(--ink-3)') : strokes[index]!));
    const chart = new uPlot(
      {
        width,
        height: HEIGHT,
        legend: { show: false },
        cursor: { y: false },
        padding: [8, hasLabels ? LABELS_WIDTH : 12, 0, 0],
        // Windows begin in UTC.
        tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
        scales: { y: { range: (_, min, max) => [Math.min(0, min), findAxisMax(max)] } },
        axes: [
          {
            ...axis,
            grid: { show: false },
            space: 88,
            values: (_, places) =>
              clearRepeats(places.map((seconds) => showAt(new Date(seconds * 1000).toISOString()))),
          },
          { ...axis, values: (_, places) => places.map((place) => formatAxis(language, place)) },
        ],
        series: [
          {},
          ...series.map(({ label: name, isBefore, isOther }, index) => {
            const stroke = strokes[index]!;
            return {
              label: name,
              stroke,
              width: 1.5,
              // A line runs on over windows whose usage is not known.
              spanGaps: true,
              points: { show: false },
              // The area of all others would cover the areas of the groups. System colours (forced colours) cannot be transparent.
              ...(isBefore ? { dash: [4, 4] } : isOther || !stroke.startsWith('#') ? {} : { fill: `${stroke}29` }),
            };
          }),
        ],
        hooks: {
          draw: [
            (drawn) => drawMarks(drawn, marks, colour('var(--ink-2)')),
            (drawn) => {
              if (hasLabels) drawLabels(drawn, series, inks);
            },
          ],
        },
      },
      [instants.map((at) => new Date(at).getTime() / 1000), ...columns],
      element,
    );
    return () => chart.destroy();
  }, [series, marks, width, language, showAt]);
  const last = series[0]?.points.at(-1);
  return (
    <div
      ref={observed}
      className={styles.canvas}
      role="img"
      aria-label={last ? `${label}: ${showAt(last.at)} ${last.value}` : label}
    >
      <div ref={host} />
    </div>
  );
}

/** Draws a dashed line at each mark. A label that would cover the previous label is omitted. */
function drawMarks(chart: uPlot, marks: readonly ChartMark[], stroke: string): void {
  const { ctx, bbox } = chart;
  ctx.save();
  ctx.strokeStyle = stroke;
  ctx.setLineDash([2, 3]);
  ctx.fillStyle = stroke;
  ctx.font = `${11 * devicePixelRatio}px ${FONT}`;
  let freeFrom = Number.NEGATIVE_INFINITY;
  for (const { at, label } of marks.toSorted((left, right) => left.at.localeCompare(right.at))) {
    const x = Math.round(chart.valToPos(new Date(at).getTime() / 1000, 'x', true));
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.textAlign = 'left';
    const isLeft = x > bbox.left + bbox.width * 0.75;
    const gap = 6 * devicePixelRatio;
    const { width } = ctx.measureText(label);
    const left = isLeft ? x - gap - width : x + gap;
    if (left < freeFrom) continue;
    freeFrom = left + width + gap;
    ctx.fillText(label, left, bbox.top + 10 * devicePixelRatio);
  }
  ctx.restore();
}

/** The name of each series at its end. Names that would overlap move apart. */
function drawLabels(chart: uPlot, series: readonly ChartSeries[], inks: readonly string[]): void {
  const { ctx, bbox } = chart;
  const step = LABEL_HEIGHT * devicePixelRatio;
  const ends = series
    .flatMap(({ label, points }, index) => {
      const last = points.at(-1);
      return last ? [{ label, ink: inks[index]!, y: chart.valToPos(toPlace(last.value), 'y', true) }] : [];
    })
    .toSorted((left, right) => right.y - left.y);
  let lowest = bbox.top + bbox.height + step;
  ctx.save();
  ctx.font = `${12 * devicePixelRatio}px ${FONT}`;
  ctx.textAlign = 'left';
  ctx.textBaseline = 'middle';
  for (const { label, ink, y } of ends) {
    lowest = Math.min(y, lowest - step);
    ctx.fillStyle = ink;
    ctx.fillText(label, bbox.left + bbox.width + 8 * devicePixelRatio, lowest, (LABELS_WIDTH - 12) * devicePixelRatio);
  }
  ctx.restore();
}

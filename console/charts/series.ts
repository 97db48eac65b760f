/** Data of the charts. A figure becomes a floating-point number only where it becomes a place on the screen. */
export type ChartPoint = { readonly at: string; readonly value: string };
export type ChartSeries = {
  readonly key: string;
  readonly label: string;
  readonly points: readonly ChartPoint[];
  /** The period before: dashed and grey. */
  readonly isBefore?: boolean;
  /** Sum of all groups without a line of their own: grey. */
  readonly isOther?: boolean;
};
/** A quantity with its cost. The end of a tier has a mark of its own. */
export type CurvePoint = { readonly quantity: string; readonly amount: string; readonly isTierEnd?: boolean };
/** A moment at which something changed: a price, a correction. It is drawn on the axis of time. */
export type ChartMark = { readonly at: string; readonly label: string };

/** The place of a decimal string on an axis. Digits beyond those of a double cannot be seen. */
export function toPlace(value: string): number {
  return Number(value);
}

/** Labels of an axis. A short range has several places within one minute; their common label stands once. */
export function clearRepeats(labels: readonly string[]): string[] {
  return labels.map((label, index) => (label === labels[index - 1] ? '' : label));
}

export const SERIES_COLOURS = [
  'var(--series-1)',
  'var(--series-2)',
  'var(--series-3)',
  'var(--series-4)',
  'var(--series-5)',
] as const;

/** Number of colours for lines. Further groups share one grey line, or are only in the table. */
export const SERIES_MAX = SERIES_COLOURS.length;

export function findStroke({ isBefore, isOther }: ChartSeries, index: number): string {
  if (isBefore) return 'var(--series-before)';
  return isOther ? 'var(--ink-3)' : findColour(index);
}

export function findColour(index: number): string {
  return SERIES_COLOURS[index % SERIES_COLOURS.length]!;
}

/** The next "round" number at or above the largest value: 1, 2, 2.5 or 5 times a power of ten. */
export function findAxisMax(largest: number): number {
  if (!(largest > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(largest));
  return ([1, 2, 2.5, 5].find((step) => step * power >= largest) ?? 10) * power;
}

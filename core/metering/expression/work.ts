/**
 * An expression has a cost when it is made, by the weights of its operators, with a cap; and a budget of work when it runs,
 * counted in operations and digits and never by the clock: an audit, a rebuild or a replay must come to the same verdict
 * (docs/decisions/0004). The unit is a tenth of a microsecond of one core of the machine in BENCHMARKS.md; `npm run bench
 * -- cost` measures each weight again.
 *
 * The weights of this table are those of ordinary numbers, and add up to the cost that an expression has before it has seen
 * an event. What the values make more of it (long numbers, long texts, failures that && and || look past) is charged while
 * it is done, where arithmetic leaves the safe integers: on the fast path nothing is counted, and MAX_NODES bounds it.
 */
export const WEIGHTS = {
  number: 3,
  text: 2,
  constant: 0.1,
  /** !, &&, ||, ? : and comparisons of text. */
  logic: 0.5,
  compare: 1,
  add: 2,
  multiply: 2,
  divide: 10,
  round: 3,
  abs: 1,
  sqrt: 30,
  log: 90,
  /** With an exponent that is written as a small whole number: squares and cubes. */
  square: 6,
  pow: 160,
  /** What is approximate is cut to the digits that can be trusted before anything is decided by it. */
  round_trusted: 6,
} as const;
export type Weighed = keyof typeof WEIGHTS;

/** 30 µs: an expression may cost no more when it is made. */
export const EXPRESSION_COST_MAX = 300;

/** What values may make of it, for expressions of before the cap as well: some 100 µs. */
export const WORK_MAX = 1_000;

/** A failure that is looked past: an error is made and caught. */
export const FAILURE = 30;

/**
 * Thrown while one event is evaluated. The message may name a property and never holds a value. It carries no stack: to
 * gather one takes ten times as long as the rest, and where in our code an event was found unusable tells nobody anything.
 */
export class UnusableEvent extends Error {
  constructor(message: string) {
    const frames = Error.stackTraceLimit;
    Error.stackTraceLimit = 0;
    super(message);
    Error.stackTraceLimit = frames;
  }
}

/** Nothing looks past it: whatever && and || could still decide, the work is used up. */
export class TooMuchWork extends UnusableEvent {}

/** Outside of an evaluation, where literals are read and results added up, nothing is counted. */
const NO_LIMIT = 2 ** 30;
let left = NO_LIMIT;

/** One evaluation begins. They never interleave, because none of them waits. */
export function beginWork(): void {
  left = WORK_MAX;
}

export function endWork(): void {
  left = NO_LIMIT;
}

export function spend(units: number): void {
  left -= Math.ceil(units);
  if (left < 0) throw new TooMuchWork(`the expression costs more than ${WORK_MAX} units of work`);
}

/**
 * An expression has a cost, computed from the weights of its operators when it is created, and the cost is capped. Each
 * evaluation also has a work budget. It is counted in operations and digits, never by the clock: an audit, a rebuild or a
 * replay must reach the same verdict (docs/decisions/0004). The unit is a tenth of a microsecond of one core of the
 * machine in BENCHMARKS.md; `npm run bench -- cost` measures each weight.
 *
 * The weights in this table assume ordinary numbers and add up to the cost of an expression before any event. Long
 * numbers, long texts and failures that && and || ignore cost more. That work is charged when it is done, once arithmetic
 * leaves the safe integers. The fast path counts nothing; MAX_NODES bounds it.
 */
export const WEIGHTS = {
  number: 3,
  text: 2,
  /** An object that a path enters. */
  object: 10,
  constant: 0.1,
  /** The operators !, &&, ||, ? : and comparisons of text. */
  logic: 0.5,
  compare: 1,
  add: 2,
  multiply: 2,
  divide: 10,
  round: 3,
  abs: 1,
  sqrt: 30,
  log: 90,
  /** A power whose exponent is written as a small whole number, such as squares and cubes. */
  square: 6,
  pow: 160,
  /** An approximate number is rounded to its trusted digits before a decision depends on it. */
  round_trusted: 6,
} as const;
export type Weighed = keyof typeof WEIGHTS;

/** Maximum cost of a new expression: 30 µs. */
export const EXPRESSION_COST_MAX = 300;

/** About 100 µs: the limit of one evaluation, which depends on the values; also for expressions from before the cap. */
export const WORK_MAX = 1_000;

/** Cost of a failure that && or || ignores: an error is created and caught. */
export const FAILURE = 30;

/**
 * Thrown during the evaluation of one event. The message may name a property and never contains a value. The error has no
 * stack: collecting one takes ten times as long as the rest and does not help anyone.
 */
export class UnusableEvent extends Error {
  constructor(message: string) {
    const frames = Error.stackTraceLimit;
    Error.stackTraceLimit = 0;
    super(message);
    Error.stackTraceLimit = frames;
  }
}

/** Thrown when the budget is used up. The operators && and || do not ignore this error. */
export class TooMuchWork extends UnusableEvent {}

/** Outside of an evaluation, while literals are read and results are added up, nothing is counted. */
const NO_LIMIT = 2 ** 30;
let left = NO_LIMIT;

/** Starts the budget of one evaluation. Evaluations never interleave, because they are synchronous. */
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

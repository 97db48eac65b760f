/**
 * Compares the cost of evaluating a meter's expression: this engine in exact decimals, the planner of @bufbuild/cel in doubles, and cel-js
 * in doubles. Each engine gets the event in the form that it needs, so that only the evaluation is measured. This engine also parses the
 * texts of numbers, which the others get as numbers. A second measurement includes finding the properties in the JSON text. The result is
 * the median of several runs that alternate between the engines.
 */
import { celEnv, parse, plan } from '@bufbuild/cel';
import * as celJs from 'cel-js';
import { Decimal } from '../core/foundation/decimal.ts';
import { properties } from '../core/metering/event-text.ts';
import { compileExpression } from '../core/metering/expression.ts';
import { toDecimal } from '../test/support/exact-decimal.ts';
import { check, claim, fixed, say } from './report.ts';

const RUNS = 7;
const MS_PER_RUN = 200;
const EVENT_COUNT = 256;

type Row = { tokens: number; duration: number; pixel: number; model: string };
type Engine = { readonly name: string; readonly evaluate: (index: number) => unknown };

type Case = {
  readonly ours: string;
  readonly theirs?: string;
  /** The expected value, computed with decimal.js. */
  expected(row: Record<'tokens' | 'duration' | 'pixel', Decimal> & { model: string }): Decimal;
};

/** Strict CEL has no double × int and no ceil, and cel-js refuses to divide decimals. Such cases are measured for this engine only. */
const CASES: readonly Case[] = [
  {
    ours: 'tokens * duration * pixel',
    theirs: 'tokens * duration * pixel',
    expected: ({ tokens, duration, pixel }) => tokens.times(duration).times(pixel),
  },
  {
    ours: 'tokens * 2.0 + (model == "gpt" ? 1.0 : 0.0)',
    theirs: 'tokens * 2.0 + (model == "gpt" ? 1.0 : 0.0)',
    expected: ({ tokens, model }) => tokens.times(2).plus(model === 'gpt' ? 1 : 0),
  },
  {
    ours: 'duration <= 10 ? 0 : ceil(duration / 15) * 15',
    expected: ({ duration }) => (duration.lte(10) ? new Decimal(0) : duration.div(15).ceil().times(15)),
  },
  { ours: 'tokens / 1000 * 0.002', expected: ({ tokens }) => tokens.times('0.000002') },
  { ours: 'tokens / 7', expected: ({ tokens }) => tokens.div(7) },
  { ours: 'tokens / 7 + pixel', expected: ({ tokens, pixel }) => tokens.div(7).plus(pixel) },
];

const MUST_PER_SECOND = 1e6;

const rows: Row[] = Array.from({ length: EVENT_COUNT }, (_, index) => ({
  tokens: 100 + index * 37,
  duration: 1 + (index % 50),
  pixel: 10.25 + index,
  model: index % 3 === 0 ? 'gpt' : 'other',
}));

for (const { ours, theirs, expected } of CASES) {
  checkAnswers(ours, expected);
  const engines = [
    oursOn(ours),
    oursFromJson(ours),
    ...(theirs === undefined ? [] : [bufbuildOn(theirs), celJsOn(theirs)]),
  ];
  const rates = medianRates(engines);
  say(`\n  ${ours}`);
  for (const [index, engine] of engines.entries()) {
    const rate = rates[index]!;
    const ratio = index === 0 ? '' : `   ours is ${(rates[0]! / rate).toFixed(1)} times as fast`;
    say(
      `  ${engine.name.padEnd(34)} ${(rate / 1e6).toFixed(2).padStart(6)} M/s ${(1e9 / rate).toFixed(0).padStart(6)} ns${ratio}`,
    );
  }
  const millions = `${fixed(rates[0]! / 1e6, 2)} M/s`;
  claim(`P10 ${ours}`, millions, `${fixed(MUST_PER_SECOND / 1e6, 0)} M/s`, rates[0]! >= MUST_PER_SECOND);
}

function checkAnswers(expression: string, expected: Case['expected']): void {
  const compiled = compileExpression(expression);
  for (const row of rows) {
    const { tokens, duration, pixel, model } = row;
    const exact = { tokens: new Decimal(tokens), duration: new Decimal(duration), pixel: new Decimal(pixel), model };
    const wanted = expected(exact).toDecimalPlaces(24).toFixed();
    const { value, unusable } = compiled.evaluate(properties(JSON.stringify(row)));
    const found = value === undefined ? unusable : toDecimal(value).toFixed();
    check(found === wanted, `${expression} of ${JSON.stringify(row)} is ${wanted}, not ${found}`);
  }
}

function oursOn(expression: string): Engine {
  const compiled = compileExpression(expression);
  const events = rows.map((row) => properties(JSON.stringify(row)));
  return { name: 'ours, exact decimals from text', evaluate: (index) => compiled.evaluate(events[index]!) };
}

function oursFromJson(expression: string): Engine {
  const compiled = compileExpression(expression);
  const events = rows.map((row) => JSON.stringify(row));
  return {
    name: 'ours, from the JSON of the event',
    evaluate: (index) => compiled.evaluate(properties(events[index]!)),
  };
}

function bufbuildOn(expression: string): Engine {
  const planned = plan(celEnv(), parse(expression));
  const events = rows.map((row) => ({ ...row }) as Record<string, number | string>);
  return { name: '@bufbuild/cel, doubles', evaluate: (index) => planned(events[index]!) };
}

function celJsOn(expression: string): Engine {
  const parsed = celJs.parse(expression);
  if (!parsed.isSuccess) throw new Error('cel-js does not parse it');
  const events = rows.map((row) => ({ ...row }) as Record<string, unknown>);
  return { name: 'cel-js, doubles', evaluate: (index) => celJs.evaluate(parsed.cst, events[index]!) };
}

function medianRates(engines: readonly Engine[]): number[] {
  const rates: number[][] = engines.map(() => []);
  for (let run = 0; run < RUNS; run++) {
    for (const [index, engine] of engines.entries()) rates[index]!.push(rateOf(engine));
  }
  return rates.map((values) => values.sort((a, b) => a - b)[Math.floor(RUNS / 2)]!);
}

/** Evaluations per second of CPU time, which other work on the machine affects least. */
function rateOf(engine: Engine): number {
  let evaluations = 0;
  const start = performance.now();
  const used = process.cpuUsage();
  while (performance.now() - start < MS_PER_RUN) {
    for (let index = 0; index < EVENT_COUNT; index++) engine.evaluate(index);
    evaluations += EVENT_COUNT;
  }
  const { user, system } = process.cpuUsage(used);
  return (evaluations / (user + system)) * 1e6;
}

/**
 * The quantity of an event as a CEL expression of its properties (docs/rules/metering.md, "Expressions"), evaluated in
 * exact decimals (docs/decisions/0004). A missing property is 0, numeric strings are numbers, and any other present value
 * makes the event unusable. The result is a number that depends on at least one property. @bufbuild/cel parses; the tree
 * is compiled to closures once.
 */
import { parse } from '@bufbuild/cel';
import { invalid } from '../foundation/error.ts';
import type { PropertySource } from './event-text.ts';
import type { Exact } from './exact.ts';
import { compileNumber, type Evaluate, type Program } from './expression/compile.ts';
import { beginWork, EXPRESSION_COST_MAX, endWork, UnusableEvent } from './expression/work.ts';
import { roundToQuantity } from './quantity.ts';

type ExpressionResult =
  | { readonly value: Exact; readonly unusable?: undefined }
  | { readonly value?: undefined; readonly unusable: string };

export type CompiledExpression = {
  readonly text: string;
  /** The properties that the expression reads, in order of appearance. */
  readonly identifiers: readonly string[];
  /** Cost of one evaluation with ordinary numbers, in units of work (expression/work.ts). */
  readonly cost: number;
  /** Returns the quantity: rounded half away from zero to 24 places, less than 10^24. */
  evaluate(properties: PropertySource): ExpressionResult;
};

const MAX_LENGTH = 512;
const MAX_BRACKET_DEPTH = 48;

export function compileExpression(text: string): CompiledExpression {
  const program = compileProgram(text);
  const evaluate = program.evaluate;
  return {
    text,
    identifiers: program.identifiers,
    cost: program.cost,
    evaluate: (properties) => evaluateToResult(evaluate, properties),
  };
}

/**
 * Compiles a new expression and checks its cost against the cap. Older expressions may exceed the cap; the work budget limits their
 * evaluation.
 */
export function compileNewExpression(text: string): CompiledExpression {
  const compiled = compileExpression(text);
  if (compiled.cost <= EXPRESSION_COST_MAX) return compiled;
  const cost = Math.ceil(compiled.cost);
  throw invalid(
    'aggregation.expression',
    `costs ${cost} units of work for each event, at most ${EXPRESSION_COST_MAX} are allowed`,
    {
      cost,
      cost_max: EXPRESSION_COST_MAX,
    },
  );
}

function evaluateToResult(evaluate: Evaluate<Exact>, properties: PropertySource): ExpressionResult {
  beginWork();
  try {
    const value = roundToQuantity(evaluate(properties));
    return typeof value === 'string' ? { unusable: `the result of the expression ${value}` } : { value };
  } catch (error) {
    if (error instanceof UnusableEvent) return { unusable: error.message };
    throw error;
  } finally {
    endWork();
  }
}

function compileProgram(text: string): Program {
  if (text.length > MAX_LENGTH) throw invalidExpression(`is longer than ${MAX_LENGTH} characters`);
  if (bracketDepth(text) > MAX_BRACKET_DEPTH) throw invalidExpression(`nests more than ${MAX_BRACKET_DEPTH} brackets`);
  const program = compileNumber(parseExpression(text), text, invalidExpression);
  if (program.identifiers.length === 0) throw invalidExpression('must use at least one property');
  return program;
}

function parseExpression(text: string): ReturnType<typeof parse> {
  try {
    return parse(text);
  } catch (error) {
    throw invalidExpression(`is not a CEL expression: ${(error as Error).message}`);
  }
}

function invalidExpression(why: string): Error {
  return invalid('aggregation.expression', why);
}

/**
 * Computes the deepest nesting of brackets. It is checked before parsing, because the parser takes half a second to report 500 open
 * brackets.
 */
function bracketDepth(text: string): number {
  let depth = 0;
  let deepest = 0;
  for (const character of text) {
    if ('([{'.includes(character)) deepest = Math.max(deepest, ++depth);
    else if (')]}'.includes(character)) depth--;
  }
  return deepest;
}

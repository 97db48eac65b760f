/**
 * The published conformance vectors of CEL, as far as our subset goes. In the subset is every vector whose syntax tree has
 * only numbers, text, true, false, plain variables, and the operators and functions of `CALLS`. Outside, by the numbers:
 * unsigned integers, bytes, null, lists, maps, messages, fields, indices, `in`, %, macros, methods, conversions other than
 * double() of a number, ordering and concatenating text, the extensions (math.*, optionals, …), durations and timestamps: a meter's expression has none of them.
 * What is in the subset and answers differently on purpose is in `DIFFERENT`, each with its reason.
 */
import { parse } from '@bufbuild/cel';
import {
  getConformanceSuite,
  type IncrementalTest,
  type IncrementalTestSuite,
} from '@bufbuild/cel-spec/testdata/tests.js';
import { expect } from 'chai';
import { Decimal } from '../../../core/foundation/decimal.ts';
import type { Property } from '../../../core/metering/event-text.ts';
import { compileExpression } from '../../../core/metering/expression.ts';
import { toDecimal } from '../../support/exact-decimal.ts';

type Expr = NonNullable<ReturnType<typeof parse>['expr']>;
type Answer = number | bigint | boolean | 'error';
type Vector = {
  readonly name: string;
  readonly expr: string;
  readonly expected: Answer;
  readonly bindings: Map<string, Property>;
};

const CALLS = new Set(
  '_+_ _-_ _*_ _/_ -_ !_ _&&_ _||_ _==_ _!=_ _<_ _<=_ _>_ _>=_ _?_:_ double max min pow abs floor ceil round sqrt log'.split(
    ' ',
  ),
);

/** The others take numbers only. */
const TAKES_ANY = new Set(['!_', '_&&_', '_||_', '_==_', '_!=_', '_?_:_']);

const ZERO = 'division by zero makes the event unusable; there is no NaN and no Infinity';
const EXACT = 'numbers are exact and do not overflow at 64 bits';
const RANGE = 'a quantity is below 10^24, and numbers are not rounded to doubles';
const TYPES = 'operands of the wrong type are refused when the meter is made, whichever side decides';

const DIFFERENT: Record<string, string> = {
  'comparisons/eq_literal/not_eq_double_nan': ZERO,
  'comparisons/ne_literal/not_ne_double_nan': ZERO,
  'comparisons/ne_literal/ne_double_nan': ZERO,
  'fp_math/fp_math/divide_zero': ZERO,
  'conversions/double/int_range': EXACT,
  'fp_math/fp_math/fp_overflow_positive': RANGE,
  'fp_math/fp_math/fp_overflow_negative': RANGE,
  'integer_math/int64_math/int64_overflow_positive': EXACT,
  'integer_math/int64_math/int64_overflow_negative': EXACT,
  'integer_math/int64_math/int64_overflow_add_negative': EXACT,
  'integer_math/int64_math/int64_overflow_sub_positive': EXACT,
  'integer_math/int64_math/int64_min_negate': EXACT,
  'integer_math/int64_math/int64_min_negate_mul': EXACT,
  'integer_math/int64_math/int64_min_negate_div': EXACT,
  'integer_math/int64_math/int64_overflow_mul_positive': EXACT,
  'integer_math/int64_math/int64_overflow_mul_negative': EXACT,
  'logic/AND/short_circuit_type_left': TYPES,
  'logic/AND/short_circuit_type_right': TYPES,
  'logic/OR/short_circuit_type_left': TYPES,
  'logic/OR/short_circuit_type_right': TYPES,
};

const vectors = [...inSubset(getConformanceSuite(), '')];

describe('expression: the conformance vectors of CEL that fall into our subset', () => {
  it('are as many as they were', () => expect(vectors.length).to.equal(171));
  for (const vector of vectors) {
    const reason = DIFFERENT[vector.name];
    it(`${vector.name}: ${vector.expr}${reason === undefined ? '' : ` differs: ${reason}`}`, () => {
      const same = isSame(answer(vector), vector.expected);
      expect(same, `${String(answer(vector))} instead of ${String(vector.expected)}`).to.equal(reason === undefined);
    });
  }
});

/** An expression must be a number and use a property, so each vector is wrapped with one that is missing, which is 0. */
function answer(vector: Vector): Decimal | boolean | 'error' {
  try {
    if (typeof vector.expected !== 'boolean') return evaluated(`(${vector.expr}) + nothing`, vector) ?? 'error';
    return evaluated(`(${vector.expr}) ? 1 : nothing`, vector)?.equals(1) ?? 'error';
  } catch {
    return 'error';
  }
}

function evaluated(expression: string, vector: Vector): Decimal | undefined {
  const result = compileExpression(expression).evaluate(vector.bindings);
  return result.unusable === undefined ? toDecimal(result.value) : undefined;
}

function isSame(ours: Decimal | boolean | 'error', expected: Answer): boolean {
  if (typeof ours === 'boolean' || ours === 'error' || typeof expected === 'boolean' || expected === 'error') {
    return ours === expected;
  }
  return ours.equals(new Decimal(expected.toString()));
}

function* inSubset(suite: IncrementalTestSuite, path: string): Iterable<Vector> {
  for (const test of suite.tests) {
    const vector = vectorOf(test, path);
    if (vector !== undefined) yield vector;
  }
  for (const inner of suite.suites) yield* inSubset(inner, path === '' ? inner.name : `${path}/${inner.name}`);
}

function vectorOf({ original }: IncrementalTest, path: string): Vector | undefined {
  const expected = expectedOf(original.resultMatcher);
  const bindings = bindingsOf(original.bindings);
  if (expected === undefined || bindings === undefined || original.disableMacros) return undefined;
  let root: Expr | undefined;
  try {
    root = parse(original.expr).expr;
  } catch {
    return undefined;
  }
  if (root === undefined || !isOurs(root, bindings)) return undefined;
  return { name: `${path}/${original.name}`, expr: original.expr, expected, bindings };
}

function isOurs(node: Expr, bindings: ReadonlyMap<string, Property>): boolean {
  const kind = node.exprKind;
  if (kind.case === 'identExpr') return bindings.has(kind.value.name);
  if (kind.case === 'constExpr') {
    return ['int64Value', 'doubleValue', 'stringValue', 'boolValue'].includes(kind.value.constantKind.case ?? '');
  }
  if (kind.case !== 'callExpr' || kind.value.target !== undefined || !CALLS.has(kind.value.function)) return false;
  const operands = kind.value.args;
  if (!TAKES_ANY.has(kind.value.function) && operands.some((operand) => isTextOrTruth(operand, bindings))) return false;
  return operands.every((operand) => isOurs(operand, bindings));
}

function isTextOrTruth(node: Expr, bindings: ReadonlyMap<string, Property>): boolean {
  const kind = node.exprKind;
  if (kind.case === 'identExpr') return bindings.get(kind.value.name)?.kind === 'string';
  if (kind.case !== 'constExpr') return false;
  return kind.value.constantKind.case === 'stringValue' || kind.value.constantKind.case === 'boolValue';
}

type Matcher = IncrementalTest['original']['resultMatcher'];

function expectedOf(matcher: Matcher): Answer | undefined {
  if (matcher.case === 'evalError') return 'error';
  if (matcher.case === undefined) return true;
  if (matcher.case !== 'value') return undefined;
  const { kind } = matcher.value;
  return kind.case === 'int64Value' || kind.case === 'doubleValue' || kind.case === 'boolValue'
    ? kind.value
    : undefined;
}

function bindingsOf(bindings: IncrementalTest['original']['bindings']): Map<string, Property> | undefined {
  const properties = new Map<string, Property>();
  for (const [name, bound] of Object.entries(bindings)) {
    const value = bound.kind.case === 'value' ? bound.kind.value.kind : undefined;
    if (value?.case === 'int64Value' || value?.case === 'doubleValue') {
      properties.set(name, { kind: 'number', text: String(value.value) });
    } else if (value?.case === 'stringValue') properties.set(name, { kind: 'string', text: value.value });
    else return undefined;
  }
  return properties;
}

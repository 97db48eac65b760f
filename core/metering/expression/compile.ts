/**
 * Compiles the syntax tree of an expression to closures over exact numbers and checks its types. All properties are
 * numbers, except those compared with text by == or !=, which are text. There is one kind of number: 2 equals 2.0.
 * Everything outside the operator table (%, lists, maps, fields, macros, methods, …) is rejected by name.
 */
import type { parse } from '@bufbuild/cel';
import { Decimal } from '../../foundation/decimal.ts';
import type { PropertySource } from '../event-text.ts';
import { type Exact, toExact } from '../exact.ts';
import * as arithmetic from './arithmetic.ts';
import {
  BINARY,
  BINARY_WEIGHTS,
  isRounding,
  ORDERS,
  operatorText,
  UNARY,
  UNARY_WEIGHTS,
  type Unary,
} from './operators.ts';
import { type Expr, readPropertyPath, suggestPath } from './property-names.ts';
import { formatPath, isSame, type PropertyPath, readNumber, readText } from './read-properties.ts';
import { FAILURE, spend, TooMuchWork, UnusableEvent, WEIGHTS, type Weighed } from './work.ts';

export type Evaluate<T> = (properties: PropertySource) => T;
export type Program = {
  /** Names of the properties, or paths with dots, in order of appearance. */
  readonly identifiers: readonly string[];
  readonly evaluate: Evaluate<Exact>;
  /** Cost of one evaluation with ordinary numbers, in units of work (work.ts). */
  readonly cost: number;
};

type ParsedExpression = ReturnType<typeof parse>;
type Refuse = (why: string) => Error;

type Compiled =
  | { readonly type: 'number'; readonly run: Evaluate<Exact>; readonly isApproximate: boolean }
  | { readonly type: 'boolean'; readonly run: Evaluate<boolean> }
  | { readonly type: 'text'; readonly run: Evaluate<string> };

const MAX_NODES = 200;

/** Compiles an expression that must give a number. */
export function compileNumber(parsed: ParsedExpression, text: string, refuse: Refuse): Program {
  const root = parsed.expr as Expr;
  const nodes = collectNodes(root, refuse);
  const compiler = new Compiler({
    textProperties: textPropertiesIn(nodes),
    positions: positionsIn(parsed),
    text,
    refuse,
  });
  const compiled = compiler.compile(root);
  if (compiled.type !== 'number') throw refuse(`must give a number, not ${TYPE_NAMES[compiled.type]}`);
  // The result is rounded to the places of a quantity, so exactly half of the last place must be recognized as half.
  const evaluate = compiler.decisive(compiled);
  return {
    identifiers: [...new Set(nodes.map(propertyName).filter((name) => name !== undefined))],
    evaluate,
    cost: compiler.cost,
  };
}

const TYPE_NAMES = { number: 'a number', boolean: 'true or false', text: 'text' } as const;

/** Every node in order of appearance. Rejects every node that is not a constant, a property or a call. */
function collectNodes(root: Expr, refuse: Refuse): Expr[] {
  const nodes: Expr[] = [];
  const open: Expr[] = [root];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    nodes.push(node);
    if (nodes.length > MAX_NODES) throw refuse(`has more than ${MAX_NODES} parts`);
    if (readPropertyPath(node) !== undefined) continue;
    const kind = node.exprKind;
    if (kind.case === 'selectExpr' || (kind.case === 'callExpr' && kind.value.function === '_[_]'))
      throw refuse(explainPath(node));
    if (kind.case === 'callExpr') {
      if (kind.value.target !== undefined) throw refuse(`has no methods: .${kind.value.function}()`);
      for (let at = kind.value.args.length - 1; at >= 0; at--) open.push(kind.value.args[at]!);
    } else if (kind.case !== 'constExpr') {
      throw refuse(`has no ${UNSUPPORTED[kind.case ?? ''] ?? 'such construct'}`);
    }
  }
  return nodes;
}

function explainPath(node: Expr): string {
  const suggestion = suggestPath(node);
  if (suggestion !== undefined) return `has an unclear path: write ${suggestion}`;
  return node.exprKind.case === 'callExpr' ? 'has no [ ] without a name in quotes' : 'has no such fields or macros';
}

const UNSUPPORTED: Record<string, string> = {
  listExpr: 'lists',
  structExpr: 'maps',
  comprehensionExpr: 'macros',
};

function propertyName(node: Expr): string | undefined {
  const path = readPropertyPath(node);
  return path && formatPath(path);
}

/** Text that differs for different paths, such as `a.b` and `["a.b"]`. */
function pathKey(node: Expr): string | undefined {
  const path = readPropertyPath(node);
  return path && JSON.stringify(path);
}

/** Finds the properties that are text: those compared with a text, and those compared with such a property. */
function textPropertiesIn(nodes: readonly Expr[]): Set<string> {
  const keys = new Set<string>();
  const comparisons = nodes.map(equalityOperands).filter((operands) => operands !== undefined);
  for (let before = -1; before < keys.size; ) {
    before = keys.size;
    for (const [left, right] of comparisons) {
      if (isText(left, keys) && pathKey(right) !== undefined) keys.add(pathKey(right) as string);
      if (isText(right, keys) && pathKey(left) !== undefined) keys.add(pathKey(left) as string);
    }
  }
  return keys;
}

function equalityOperands(node: Expr): readonly [Expr, Expr] | undefined {
  const kind = node.exprKind;
  if (kind.case !== 'callExpr' || (kind.value.function !== '_==_' && kind.value.function !== '_!=_')) return undefined;
  return [kind.value.args[0]!, kind.value.args[1]!];
}

function isText(node: Expr, keys: ReadonlySet<string>): boolean {
  const key = pathKey(node);
  if (key !== undefined) return keys.has(key);
  return node.exprKind.case === 'constExpr' && node.exprKind.value.constantKind.case === 'stringValue';
}

/** Positions in the text by node id. */
function positionsIn(parsed: ParsedExpression): Record<string, number> {
  return (parsed.sourceInfo?.positions ?? {}) as Record<string, number>;
}

type CompilerInput = {
  readonly textProperties: ReadonlySet<string>;
  readonly positions: Record<string, number>;
  readonly text: string;
  readonly refuse: Refuse;
};

class Compiler {
  /** Cost of the nodes compiled so far. */
  cost = 0;
  private readonly input: CompilerInput;

  constructor(input: CompilerInput) {
    this.input = input;
  }

  compile(node: Expr): Compiled {
    const path = readPropertyPath(node);
    if (path !== undefined) return this.property(path);
    const kind = node.exprKind;
    if (kind.case === 'constExpr') return this.constant(node);
    if (kind.case === 'callExpr') return this.call(kind.value.function, kind.value.args);
    throw this.input.refuse('has no such construct');
  }

  private weigh(what: Weighed): void {
    this.cost += WEIGHTS[what];
  }

  private constant(node: Expr): Compiled {
    this.weigh('constant');
    const constant = node.exprKind.case === 'constExpr' ? node.exprKind.value.constantKind : undefined;
    switch (constant?.case) {
      case 'int64Value':
        return always(toExact(BigInt(constant.value), 0));
      case 'doubleValue':
        return always(this.decimalAt(node, constant.value));
      case 'boolValue': {
        const truth = constant.value;
        return { type: 'boolean', run: () => truth };
      }
      case 'stringValue': {
        const text = constant.value;
        return { type: 'text', run: () => text };
      }
      default:
        throw this.input.refuse('has only numbers, text, true and false as constants');
    }
  }

  /** Reads the exact value of a decimal literal from the source text, because the parser rounds it to a double. */
  private decimalAt(node: Expr, rounded: number): Exact {
    const rest = this.input.text.slice(this.input.positions[String(node.id)]);
    const literal = /^-?[0-9]*\.?[0-9]*(?:[eE][+-]?[0-9]+)?/.exec(rest)?.[0] ?? '';
    if (!Number.isFinite(rounded)) throw this.input.refuse(`has a constant that is too large: ${literal}`);
    if (literal === '' || Number(literal) !== rounded)
      throw this.input.refuse(`has a constant that cannot be read: ${literal}`);
    return arithmetic.fromDecimal(new Decimal(literal));
  }

  private property(path: PropertyPath): Compiled {
    for (let level = 1; level < path.length; level++) this.weigh('object');
    if (this.input.textProperties.has(JSON.stringify(path))) {
      this.weigh('text');
      return { type: 'text', run: (properties) => readText(path, properties) };
    }
    this.weigh('number');
    return { type: 'number', run: (properties) => readNumber(path, properties), isApproximate: false };
  }

  private call(name: string, args: readonly Expr[]): Compiled {
    if (name === '_?_:_') return this.conditional(args);
    if (name === '_&&_' || name === '_||_') return this.logical(name === '_||_', args);
    if (name === '!_') {
      this.weigh('logic');
      const operand = this.expectBoolean(args[0]!, '!');
      return { type: 'boolean', run: (properties) => !operand(properties) };
    }
    if (name === '_==_' || name === '_!=_') return this.equality(name === '_==_', args);
    const order = ORDERS.get(name);
    if (order !== undefined) return this.ordering(name, order, args);
    return this.numeric(name, args);
  }

  private conditional(args: readonly Expr[]): Compiled {
    this.weigh('logic');
    const condition = this.expectBoolean(args[0]!, '? :');
    const yes = this.compile(args[1]!);
    const no = this.compile(args[2]!);
    if (yes.type !== no.type) throw this.input.refuse('has a ? : whose two results are not of the same type');
    const run = (properties: PropertySource) => (condition(properties) ? yes.run(properties) : no.run(properties));
    const isApproximate = [yes, no].some((result) => result.type === 'number' && result.isApproximate);
    return { type: yes.type, run, isApproximate } as Compiled;
  }

  /** CEL semantics: an operand that cannot be evaluated is ignored if the other operand decides. */
  private logical(deciding: boolean, args: readonly Expr[]): Compiled {
    this.weigh('logic');
    const operator = deciding ? '||' : '&&';
    const left = this.expectBoolean(args[0]!, operator);
    const right = this.expectBoolean(args[1]!, operator);
    const run = (properties: PropertySource): boolean => {
      let first: boolean;
      try {
        first = left(properties);
      } catch (error) {
        if (!(error instanceof UnusableEvent) || error instanceof TooMuchWork) throw error;
        spend(FAILURE);
        if (right(properties) === deciding) return deciding;
        throw error;
      }
      return first === deciding ? deciding : right(properties);
    };
    return { type: 'boolean', run };
  }

  private equality(expected: boolean, args: readonly Expr[]): Compiled {
    const left = this.compile(args[0]!);
    const right = this.compile(args[1]!);
    if (left.type === 'number' && right.type === 'number') {
      const a = this.decisive(left);
      const b = this.decisive(right);
      this.weigh('compare');
      const run = (properties: PropertySource) => (arithmetic.order(a(properties), b(properties)) === 0) === expected;
      return { type: 'boolean', run };
    }
    if (left.type !== right.type) throw this.input.refuse('compares values of different types');
    this.weigh('logic');
    const a = left.run as Evaluate<string | boolean>;
    const b = right.run as Evaluate<string | boolean>;
    return { type: 'boolean', run: (properties) => isSame(a(properties), b(properties)) === expected };
  }

  private ordering(name: string, order: (sign: number) => boolean, args: readonly Expr[]): Compiled {
    const left = this.decisive(this.expectNumber(args[0]!, operatorText(name)));
    const right = this.decisive(this.expectNumber(args[1]!, operatorText(name)));
    this.weigh('compare');
    return { type: 'boolean', run: (properties) => order(arithmetic.order(left(properties), right(properties))) };
  }

  private numeric(name: string, args: readonly Expr[]): NumberCompiled {
    const binary = BINARY.get(name);
    const unary = UNARY.get(name);
    const count = binary !== undefined ? 2 : 1;
    if (binary === undefined && unary === undefined) throw this.input.refuse(`has no ${operatorText(name)}`);
    if (args.length !== count)
      throw this.input.refuse(`calls ${name} with ${args.length} arguments, it takes ${count}`);
    if (binary === undefined) return this.unary(name, unary as Unary, args[0]!);
    const left = this.expectNumber(args[0]!, operatorText(name));
    const right = this.expectNumber(args[1]!, operatorText(name));
    const isApproximate = left.isApproximate || right.isApproximate || APPROXIMATE.has(name);
    // max and min compare their arguments, so an approximate argument is first rounded to its trusted digits.
    const [a, b] =
      name === 'max' || name === 'min' ? [this.decisive(left), this.decisive(right)] : [left.run, right.run];
    this.weighBinary(name, args[1]!);
    return { type: 'number', run: (properties) => binary(a(properties), b(properties)), isApproximate };
  }

  /** floor, ceil and round of a quotient use the exact quotient, not one rounded to 60 digits. */
  private unary(name: string, apply: Unary, arg: Expr): NumberCompiled {
    const kind = arg.exprKind;
    if (isRounding(name) && kind.case === 'callExpr' && kind.value.function === '_/_') {
      const dividend = this.expectNumber(kind.value.args[0]!, '/');
      const divisor = this.expectNumber(kind.value.args[1]!, '/');
      if (!dividend.isApproximate && !divisor.isApproximate) {
        const [a, b] = [dividend.run, divisor.run];
        this.weigh('divide');
        const run = (properties: PropertySource) => arithmetic.divideToWhole(a(properties), b(properties), name);
        return { type: 'number', run, isApproximate: false };
      }
    }
    const compiled = this.expectNumber(arg, operatorText(name));
    const operand = isRounding(name) ? this.decisive(compiled) : compiled.run;
    this.weigh(UNARY_WEIGHTS[name]!);
    const isApproximate = !isRounding(name) && (compiled.isApproximate || APPROXIMATE.has(name));
    return { type: 'number', run: (properties) => apply(operand(properties)), isApproximate };
  }

  private weighBinary(name: string, second: Expr): void {
    const exponent = name === 'pow' ? wholeConstant(second) : undefined;
    if (exponent === undefined || exponent > SQUARE_MAX || exponent < -SQUARE_MAX) {
      this.weigh(BINARY_WEIGHTS[name]!);
      return;
    }
    this.weigh('square');
    if (exponent < 0n) this.weigh('divide');
  }

  /** Rounds a number that decides a comparison or a rounding to its trusted digits. */
  decisive({ run, isApproximate }: NumberCompiled): Evaluate<Exact> {
    if (!isApproximate) return run;
    this.weigh('round_trusted');
    return (properties) => arithmetic.roundToTrusted(run(properties));
  }

  private expectNumber(node: Expr, user: string): NumberCompiled {
    const compiled = this.compile(node);
    if (compiled.type === 'number') return compiled;
    const name = propertyName(node);
    if (name !== undefined) throw this.input.refuse(`uses the property ${name} both as text and as a number`);
    throw this.input.refuse(`uses ${TYPE_NAMES[compiled.type]} where ${user} takes a number`);
  }

  private expectBoolean(node: Expr, user: string): Evaluate<boolean> {
    const compiled = this.compile(node);
    if (compiled.type === 'boolean') return compiled.run;
    throw this.input.refuse(`uses ${TYPE_NAMES[compiled.type]} where ${user} takes a condition`);
  }
}

type NumberCompiled = Extract<Compiled, { type: 'number' }>;

/**
 * Operations whose result may have more digits than are stored. A power is one of them if its exponent is not a whole number, which may
 * depend on the event.
 */
const APPROXIMATE = new Set(['_/_', 'pow', 'sqrt', 'log']);

/** Powers of ordinary numbers up to this exponent are exact. */
const SQUARE_MAX = 10n;

function wholeConstant(node: Expr): bigint | undefined {
  const constant = node.exprKind.case === 'constExpr' ? node.exprKind.value.constantKind : undefined;
  return constant?.case === 'int64Value' ? BigInt(constant.value) : undefined;
}

function always(value: Exact): Compiled {
  return { type: 'number', run: () => value, isApproximate: false };
}

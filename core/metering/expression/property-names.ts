/**
 * Names of properties in an expression (docs/rules/metering.md, "Expressions"): `tokens`, `properties["a/b"]` for a name that is no
 * identifier, and `properties.usage.tokens` for a value inside an object.
 */
import type { parse } from '@bufbuild/cel';
import type { PropertyPath } from './read-properties.ts';

export type Expr = NonNullable<ReturnType<typeof parse>['expr']>;

/** Name before the path of a property. Alone it is the property of that name. */
const ROOT = 'properties';

/** Path of a property; undefined for any other node. */
export function readPropertyPath(node: Expr): PropertyPath | undefined {
  if (node.exprKind.case === 'identExpr') return [node.exprKind.value.name];
  const path = collectPath(node);
  if (path === undefined || path[0] !== ROOT) return undefined;
  const [, first, ...rest] = path;
  return first === undefined ? undefined : [first, ...rest];
}

/** Names of a chain such as `a.b["c"]`; undefined for any other node. */
function collectPath(node: Expr): string[] | undefined {
  const names: string[] = [];
  for (let at: Expr | undefined = node; at !== undefined; ) {
    const kind: Expr['exprKind'] = at.exprKind;
    if (kind.case === 'identExpr') return [kind.value.name, ...names.reverse()];
    if (kind.case === 'selectExpr' && !kind.value.testOnly) {
      names.push(kind.value.field);
      at = kind.value.operand;
    } else if (kind.case === 'callExpr' && kind.value.function === '_[_]') {
      const [operand, key] = kind.value.args;
      const constant = key?.exprKind.case === 'constExpr' ? key.exprKind.value.constantKind : undefined;
      if (constant?.case !== 'stringValue') return undefined;
      names.push(constant.value);
      at = operand;
    } else return undefined;
  }
  return undefined;
}

/** How to write a path that does not begin with `properties`; undefined if the node is no path. */
export function suggestPath(node: Expr): string | undefined {
  const path = collectPath(node);
  return path && suggest(path);
}

/** Reason why a field with a dot is refused; undefined for any other field. */
export function explainDottedField(field: string): string | undefined {
  if (!field.includes('.')) return undefined;
  const path = field.replace(/^(?:\$|properties)\./u, '').split('.');
  const [first] = path;
  if (path.length === 1) return `is a name, not a path: ${first} is enough`;
  return `is a name, not a path: leave it out and send an expression, ${suggest(path)}`;
}

/**
 * Reason why an expression is refused that may be meant as a name: `a/b` is the property a divided by the property b. Undefined if it has
 * no such part.
 */
export function explainAmbiguousName(expression: string): string | undefined {
  const [name] = AMBIGUOUS.exec(expression.replace(TEXTS, (text) => '"'.repeat(text.length))) ?? [];
  if (name === undefined) return undefined;
  const operation = name.includes('/') ? 'divide' : 'subtract';
  return `has ${name}: write ${name.replace(/[/-]/gu, ' $& ')} to ${operation}, or ${formatPath([name])} for the property of that name`;
}

const TEXTS = /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/gu;
/** Two names or more with only a slash or a hyphen in between. No function, path or number is among them. */
const AMBIGUOUS = /(?<![\w.\])])[A-Za-z_]\w*(?:[/-][A-Za-z_]\w*)+(?![\w.([])/u;

function suggest(path: readonly string[]): string {
  return `${formatPath(path)} for a value inside an object, ${formatPath([path.join('.')])} for the property of that name`;
}

function formatPath(path: readonly string[]): string {
  return ROOT + path.map((name) => (IDENTIFIER.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`)).join('');
}

const IDENTIFIER = /^[A-Za-z_]\w*$/u;

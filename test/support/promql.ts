/**
 * Evaluates the part of PromQL that ops/ uses, over scrapes from a test. Prometheus' own grammar parses it. Unknown
 * syntax is an error, so that no rule passes without a check. `increase` is the growth between the scrapes. Prometheus
 * extrapolates it to the whole range, which makes it larger and never zero.
 */
import type { SyntaxNode } from '@lezer/common';
import { parser } from '@prometheus-io/lezer-promql';

export type Labels = Readonly<Record<string, string>>;
type Sample = { readonly name: string; readonly labels: Labels; readonly value: number };
export type Scrape = { readonly at_seconds: number; readonly samples: readonly Sample[] };
type Element = { readonly labels: Labels; readonly value: number };
type Value = number | Element[];
type Context = { readonly text: string; readonly scrapes: readonly Scrape[] };

/** Evaluates an expression at the last scrape. */
export function evaluate(text: string, scrapes: readonly Scrape[]): Element[] {
  const value = valueOf(parsed(text), { text, scrapes });
  return typeof value === 'number' ? [{ labels: {}, value }] : value;
}

/** Names of the metrics in an expression. */
export function metricsIn(text: string): string[] {
  const names: string[] = [];
  parsed(text)
    .cursor()
    .iterate((node) => {
      if (node.name === 'Identifier') names.push(text.slice(node.from, node.to));
    });
  return names;
}

/** Parses the text of /metrics. */
export function parseSamples(exposition: string): Sample[] {
  return [...exposition.matchAll(/^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/gm)].map(([, name, labels = '', value]) => ({
    name: name!,
    labels: Object.fromEntries(
      [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label, text]) => [label!, text!]),
    ),
    value: value === '+Inf' ? Infinity : Number(value),
  }));
}

function parsed(text: string): SyntaxNode {
  const tree = parser.parse(text);
  tree.iterate({
    enter: (node) => {
      if (node.type.isError) throw new Error(`PromQL: not understood at ${node.from}: ${text}`);
    },
  });
  return tree.topNode.firstChild!;
}

function valueOf(node: SyntaxNode, context: Context): Value {
  const form = FORMS[node.name];
  if (!form) throw new Error(`PromQL: ${node.name} is not known here: ${context.text}`);
  return form(node, context);
}

const FORMS: Record<string, (node: SyntaxNode, context: Context) => Value> = {
  NumberDurationLiteral: (node, context) => Number(textOf(node, context)),
  ParenExpr: (node, context) => valueOf(node.firstChild!.nextSibling!, context),
  VectorSelector: (node, context) => selected(node, context, context.scrapes.at(-1)!),
  FunctionCall: (node, context) => called(node, context),
  AggregateExpr: (node, context) => aggregated(node, context),
  BinaryExpr: (node, context) => combined(node, context),
};

function selected(node: SyntaxNode, context: Context, scrape: Scrape): Element[] {
  const name = textOf(node.getChild('Identifier')!, context);
  const matchers = matchersIn(node, context);
  const isWanted = (labels: Labels) =>
    matchers.every(({ label, operator, value }) => MATCHES[operator]!(labels[label] ?? '', value));
  return scrape.samples
    .filter((sample) => sample.name === name && isWanted(sample.labels))
    .map(({ labels, value }) => ({ labels, value }));
}

function matchersIn(selector: SyntaxNode, context: Context) {
  return (selector.getChild('LabelMatchers')?.getChildren('UnquotedLabelMatcher') ?? []).map((matcher) => ({
    label: textOf(matcher.getChild('LabelName')!, context),
    operator: textOf(matcher.getChild('MatchOp')!, context),
    value: JSON.parse(textOf(matcher.getChild('StringLiteral')!, context)) as string,
  }));
}

const MATCHES: Record<string, (value: string, wanted: string) => boolean> = {
  '=': (value, wanted) => value === wanted,
  '!=': (value, wanted) => value !== wanted,
  '=~': (value, wanted) => new RegExp(`^(?:${wanted})$`).test(value),
  '!~': (value, wanted) => !new RegExp(`^(?:${wanted})$`).test(value),
};

function called(node: SyntaxNode, context: Context): Value {
  const name = textOf(node.getChild('FunctionIdentifier')!, context);
  const given = childrenOf(node.getChild('FunctionCallBody')!);
  const now = context.scrapes.at(-1)!.at_seconds;
  if (name === 'time') return now;
  if (name === 'absent') return absentOf(given[0]!, context);
  if (name === 'increase' || name === 'rate') return growth(given[0]!, context, name);
  if (name === 'abs')
    return (valueOf(given[0]!, context) as Element[]).map((one) => ({ ...one, value: Math.abs(one.value) }));
  if (name === 'histogram_quantile') {
    const [quantile, buckets] = given.map((each) => valueOf(each, context));
    return quantiles(quantile as number, buckets as Element[]);
  }
  throw new Error(`PromQL: the function ${name} is not known here: ${context.text}`);
}

/** If nothing is selected: one element with the labels that the selector compares by equality. */
function absentOf(node: SyntaxNode, context: Context): Element[] {
  if (node.name !== 'VectorSelector') throw new Error(`PromQL: absent needs a selector: ${context.text}`);
  if (selected(node, context, context.scrapes.at(-1)!).length > 0) return [];
  const wanted = matchersIn(node, context).flatMap(({ label, operator, value }) =>
    operator === '=' ? [[label, value]] : [],
  );
  return [{ labels: Object.fromEntries(wanted), value: 1 }];
}

/** Growth of each series that has at least two points in the range. */
function growth(node: SyntaxNode, context: Context, what: 'increase' | 'rate'): Element[] {
  if (node.name !== 'MatrixSelector') throw new Error(`PromQL: ${what} needs a range: ${context.text}`);
  const now = context.scrapes.at(-1)!.at_seconds;
  const from = now - seconds(textOf(node.getChild('DurationExpr')!, context));
  const series = new Map<string, { labels: Labels; points: [at: number, value: number][] }>();
  for (const scrape of context.scrapes.filter(({ at_seconds }) => at_seconds >= from))
    for (const { labels, value } of selected(node.getChild('VectorSelector')!, context, scrape)) {
      const one = series.get(keyOf(labels)) ?? { labels, points: [] };
      series.set(keyOf(labels), one);
      one.points.push([scrape.at_seconds, value]);
    }
  return [...series.values()].flatMap(({ labels, points }) => {
    if (points.length < 2) return [];
    // A counter that fell was reset.
    const grown = points.slice(1).reduce((sum, [, value], index) => {
      const before = points[index]![1];
      return sum + (value < before ? value : value - before);
    }, 0);
    const over = what === 'rate' ? points.at(-1)![0] - points[0]![0] : 1;
    return [{ labels, value: grown / over }];
  });
}

function quantiles(quantile: number, buckets: readonly Element[]): Element[] {
  return grouped(buckets, (name) => name !== 'le').flatMap(({ labels, members }) => {
    const rising = members
      .map((each) => ({ upTo: each.labels.le === '+Inf' ? Infinity : Number(each.labels.le), count: each.value }))
      .sort((a, b) => a.upTo - b.upTo);
    const rank = quantile * rising.at(-1)!.count;
    const index = rising.findIndex(({ count }) => count >= rank);
    if (rank === 0 || index < 0) return [];
    const { upTo, count } = rising[index]!;
    const below = rising[index - 1] ?? { upTo: 0, count: 0 };
    if (upTo === Infinity) return [{ labels, value: below.upTo }];
    return [{ labels, value: below.upTo + ((upTo - below.upTo) * (rank - below.count)) / (count - below.count) }];
  });
}

const AGGREGATES: Record<string, (values: number[]) => number> = {
  sum: (values) => values.reduce((sum, value) => sum + value, 0),
  max: (values) => Math.max(...values),
  min: (values) => Math.min(...values),
  count: (values) => values.length,
};

function aggregated(node: SyntaxNode, context: Context): Element[] {
  const operator = AGGREGATES[textOf(node.getChild('AggregateOp')!, context)];
  const modifier = node.getChild('AggregateModifier');
  if (!operator || (modifier && !modifier.getChild('By')))
    throw new Error(`PromQL: this aggregation is not known here: ${context.text}`);
  const by = (modifier?.getChild('GroupingLabels')?.getChildren('LabelName') ?? []).map((label) =>
    textOf(label, context),
  );
  const [given] = childrenOf(node.getChild('FunctionCallBody')!);
  return grouped(valueOf(given!, context) as Element[], (name) => by.includes(name)).map(({ labels, members }) => ({
    labels,
    value: operator(members.map(({ value }) => value)),
  }));
}

function grouped(elements: readonly Element[], keep: (label: string) => boolean) {
  const groups = new Map<string, { labels: Labels; members: Element[] }>();
  for (const element of elements) {
    const labels = Object.fromEntries(Object.entries(element.labels).filter(([name]) => keep(name)));
    const group = groups.get(keyOf(labels)) ?? { labels, members: [] };
    groups.set(keyOf(labels), group);
    group.members.push(element);
  }
  return [...groups.values()];
}

const ARITHMETIC: Record<string, (left: number, right: number) => number> = {
  Add: (left, right) => left + right,
  Sub: (left, right) => left - right,
  Mul: (left, right) => left * right,
  Div: (left, right) => left / right,
};
const COMPARISONS: Record<string, (left: number, right: number) => boolean> = {
  Eql: (left, right) => left === right,
  Neq: (left, right) => left !== right,
  Gtr: (left, right) => left > right,
  Gte: (left, right) => left >= right,
  Lss: (left, right) => left < right,
  Lte: (left, right) => left <= right,
};

/** Combines the elements of two vectors that have the same labels. */
function combined(node: SyntaxNode, context: Context): Value {
  const parts = childrenOf(node);
  if (parts.length !== 3) throw new Error(`PromQL: modifiers are not known here: ${context.text}`);
  const [left, right] = [valueOf(parts[0]!, context), valueOf(parts[2]!, context)];
  if (parts[1]!.name === 'Or') return either(left as Element[], right as Element[]);
  const [compute, compare] = [ARITHMETIC[parts[1]!.name], COMPARISONS[parts[1]!.name]];
  if (typeof left === 'number' && typeof right === 'number' && compute) return compute(left, right);
  const vector = Array.isArray(left) ? left : (right as Element[]);
  return vector.flatMap((element) => {
    const [a, b] = [sideOf(left, element), sideOf(right, element)];
    if (a === undefined || b === undefined) return [];
    if (compute) return [{ labels: element.labels, value: compute(a, b) }];
    if (compare) return compare(a, b) ? [element] : [];
    throw new Error(`PromQL: ${parts[1]!.name} is not known here: ${context.text}`);
  });
}

/** The elements of the left vector, and those of the right one with other labels. */
function either(left: readonly Element[], right: readonly Element[]): Element[] {
  const known = new Set(left.map(({ labels }) => keyOf(labels)));
  return [...left, ...right.filter(({ labels }) => !known.has(keyOf(labels)))];
}

function sideOf(side: Value, { labels }: Element): number | undefined {
  return typeof side === 'number' ? side : side.find((each) => keyOf(each.labels) === keyOf(labels))?.value;
}

function keyOf(labels: Labels): string {
  return JSON.stringify(Object.entries(labels).sort());
}

const UNITS: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86_400 };

function seconds(duration: string): number {
  const [, count, unit] = /^(\d+)([smhd])$/.exec(duration) ?? [];
  if (!unit) throw new Error(`PromQL: the duration ${duration} is not known here`);
  return Number(count) * UNITS[unit]!;
}

function childrenOf(node: SyntaxNode): SyntaxNode[] {
  const children: SyntaxNode[] = [];
  for (let child = node.firstChild; child; child = child.nextSibling) children.push(child);
  return children;
}

function textOf(node: SyntaxNode, { text }: Context): string {
  return text.slice(node.from, node.to);
}

/** The alert rules as Prometheus would read them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

export type Rule = {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly description: string };
};

const FILE = join(import.meta.dirname, '..', '..', 'ops', 'prometheus-alerts.yml');

export const RULES: readonly Rule[] = parse(readFileSync(FILE, 'utf8')).groups.flatMap(
  ({ rules }: { rules: Rule[] }) => rules,
);

/** Its expression. */
export function ruleNamed(alert: string): string {
  const rule = RULES.find((each) => each.alert === alert);
  if (!rule) throw new Error(`no rule is named ${alert}`);
  return rule.expr;
}

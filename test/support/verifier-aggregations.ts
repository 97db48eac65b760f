/**
 * Generates the block of aggregations in commands/verify-invoice.mjs. The program imports nothing, so the block is
 * written into it.
 */
import type { MeterAggregator } from '../../core/metering/aggregations/aggregation.ts';

const BLOCK = /(?<=\nconst AGGREGATIONS = )\{[\s\S]*?\}(?=;\n\/\/ End of the written block\.\n)/;

/** Returns the program with the formulas of these aggregations. */
export function withAggregations(program: string, aggregations: Readonly<Record<string, MeterAggregator>>): string {
  if (!BLOCK.test(program)) throw new Error('the program has no block of aggregations');
  const entries = Object.entries(aggregations).map(([type, { value_kind, chain_rule, verifier }]) =>
    [
      `  ${type}: {`,
      `    value_kind: '${value_kind}',`,
      `    chain_rule: '${chain_rule}',`,
      `    number: ${verifier},`,
      '  },',
    ].join('\n'),
  );
  return program.replace(BLOCK, () => `{\n${entries.join('\n')}\n}`);
}

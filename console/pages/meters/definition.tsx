import type { ReactNode } from 'react';
import { useTexts } from '../../texts/texts.ts';
import type { AggregationChoice } from './meter-draft.ts';
import { METER_TEXTS } from './meter-texts.ts';

type DefinitionProps = {
  aggregation: { type: AggregationChoice; field: string | null; expression: string | null; multiplier: string | null };
};

/** How a meter counts, in short: "Sum of tokens_in". */
export function Definition({ aggregation: { type, field, expression, multiplier } }: DefinitionProps): ReactNode {
  const texts = useTexts(METER_TEXTS);
  const value = expression ?? field;
  if (type === 'COUNT' || value === null) return texts.aggregation(type);
  const [before = '', after = ''] = texts.by(texts.aggregation(type), '\n').split('\n');
  return (
    <>
      {before}
      <span className="mono">{value}</span>
      {after}
      {multiplier && ` × ${multiplier}`}
    </>
  );
}

/**
 * Parses a description of prices in plain words by rules alone (docs/rules/parsing.md): equal words give equal bodies,
 * without a key and without a network. Words that no rule fits are reported.
 */
import type { CompileExpression } from '../../metering/meter/record.ts';
import { checkConfiguration } from './check.ts';
import { addPlan, emptyDraft } from './configure.ts';
import { readFacts } from './facts.ts';
import { maxConfidence, type NotUnderstood, type ParsedPricing } from './record.ts';
import { splitSections } from './sections.ts';
import { convertToPricedSize } from './sizes.ts';

export function parsePricing(
  description: string,
  { currency, compileExpression }: { currency: string; compileExpression?: CompileExpression },
): ParsedPricing {
  const draft = emptyDraft(currency);
  const left: NotUnderstood[] = [];
  let understood = 0;
  let words = 0;
  const { text: sized, assumption } = convertToPricedSize(description);
  if (assumption) draft.assumptions.add(assumption);
  for (const { name, sentences } of splitSections(sized)) {
    const readings = sentences.map(readFacts);
    for (const reading of readings) {
      understood += reading.understood;
      words += reading.words;
      for (const text of reading.left)
        if (!left.some((lost) => lost.text === text)) left.push({ text, reason: NO_RULE });
    }
    const facts = readings.flatMap((reading) => reading.facts);
    if (name !== null || facts.length > 0) addPlan(draft, name, facts);
  }
  const { configuration, rejected } = checkConfiguration(draft, compileExpression);
  const not_understood = [...left, ...draft.not_understood, ...rejected];
  const assumptions = [...draft.assumptions];
  const share = words === 0 ? 0 : understood / words;
  return {
    ...configuration,
    not_understood,
    assumptions,
    confidence: Math.min(maxConfidence(configuration), computeConfidence(share, { not_understood, assumptions })),
  };
}

const NO_RULE = 'no rule fits these words';

/** Computes the confidence: the share of the words that were understood, less a penalty for each assumption. */
function computeConfidence(
  share: number,
  outcome: { not_understood: readonly unknown[]; assumptions: readonly unknown[] },
): number {
  if (share === 0) return 0;
  const penalty = 0.05 * outcome.assumptions.length;
  const most = outcome.not_understood.length > 0 ? 0.95 : 1;
  return Math.round(100 * Math.max(0.01, Math.min(most, share) - penalty)) / 100;
}
